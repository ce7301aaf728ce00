// `lockstep plan schedule`: a pipeline schedule from its parameters, as the golden files hold it.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/mapped_file.h"
#include "cli/nearest.h"
#include "cli/output.h"
#include "cli/plan_groups_of.h"
#include "cli/plan_parameters.h"
#include "cli/plan_parts.h"
#include "plan/schedule/schedule_query.h"
#include "plan/versions.h"

namespace lockstep {
namespace {

using plan::ScheduleFramework;

struct NamedFramework {
  std::string_view name;
  ScheduleFramework framework;
};
constexpr std::array kFrameworks = {NamedFramework{"deepspeed", ScheduleFramework::kDeepSpeed},
                                    NamedFramework{"megatron", ScheduleFramework::kMegatron},
                                    NamedFramework{"torch", ScheduleFramework::kTorch},
                                    NamedFramework{"torch-runtime", ScheduleFramework::kTorchRuntime},
                                    NamedFramework{"zero-bubble", ScheduleFramework::kZeroBubble},
                                    NamedFramework{"dualpipe", ScheduleFramework::kDualPipe}};

constexpr std::array kParameters = {
    PlanParameter{"name", ParameterKind::kText,
                  "the schedule: train, 1F1B, interleaved, GPipe, ZBV, zb, DualPipe ..."},
    PlanParameter{"stages", ParameterKind::kInteger, "ranks of the pipeline"},
    PlanParameter{"virtual", ParameterKind::kInteger, "stages or model chunks of a rank"},
    PlanParameter{"micro_batches", ParameterKind::kInteger, ""},
    PlanParameter{"forward_only", ParameterKind::kBoolean, "default false"},
    PlanParameter{"version", ParameterKind::kText, "of deepspeed: OLD, or NEW (default); of torch: 2.14 (default), or 2.15, which names its waits, or before"},
    PlanParameter{"post_validation", ParameterKind::kBoolean, "zero-bubble: of the optimizer"},
    // Fields of Megatron's configuration.
    PlanParameter{"batch_p2p_comm", ParameterKind::kBoolean, "megatron; default true"},
    PlanParameter{"batch_p2p_sync", ParameterKind::kBoolean, "megatron; default true"},
    PlanParameter{"overlap_p2p_comm", ParameterKind::kBoolean, "megatron; default false, as those below"},
    PlanParameter{"overlap_p2p_comm_warmup_flush", ParameterKind::kBoolean, "megatron"},
    PlanParameter{"variable_seq_lengths", ParameterKind::kBoolean, "megatron"},
    PlanParameter{"mtp_standalone", ParameterKind::kBoolean, "megatron"},
    PlanParameter{"group", ParameterKind::kText,
                  "megatron: micro-batches of a group, 3, or rank0:6, others:4; default: the stages"},
    PlanParameter{"config", ParameterKind::kJson, "megatron: any of these as one JSON object"},
    PlanParameter{"csv", ParameterKind::kText, "torch: a file with the order of computation"},
    PlanParameter{"old_letters", ParameterKind::kBoolean,
                  "torch: the file says B for the input's gradient and BW for all"},
    // The same by the names that single files use.
    PlanParameter{"schedule", ParameterKind::kText, "as --name"},
    PlanParameter{"pp", ParameterKind::kInteger, "as --stages"},
    PlanParameter{"vp", ParameterKind::kInteger, "as --virtual"},
    PlanParameter{"chunks", ParameterKind::kInteger, "as --virtual"},
    PlanParameter{"microbatches", ParameterKind::kInteger, "as --micro-batches"},
    PlanParameter{"num_chunks", ParameterKind::kInteger, "as --micro-batches"},
    PlanParameter{"microbatch_group_size_per_vp_stage", ParameterKind::kText, "as --group"},
    PlanParameter{"num_stages", ParameterKind::kInteger, "stages * virtual, checked"},
};

using Names = std::span<const std::string_view>;

std::string dashed(std::string_view key) {
  std::string flag(key);
  std::ranges::replace(flag, '_', '-');
  return flag;
}

/// The one of `names` that was given; an error where two were and differ.
Result<PlanJson> one_of(const PlanArguments& arguments, Names names) {
  PlanJson value;
  for (const std::string_view name : names) {
    if (!arguments.has(name)) continue;
    const PlanJson& given = arguments.values[name];
    if (!value.is_null() && value != given) {
      return Error{ErrorCode::kUsage,
                   fmt::format("--{} and --{} say the same thing, and differ", names[0], dashed(name))};
    }
    value = given;
  }
  return value;
}

/// Members of --config become arguments of their own.
std::optional<Error> unfold_config(PlanArguments& arguments) {
  if (!arguments.has("config")) return std::nullopt;
  const PlanJson config = arguments.values["config"];
  if (!config.is_object()) return Error{ErrorCode::kUsage, "--config takes a JSON object"};
  for (const auto& [field, value] : config.items()) {
    const std::string key = field == "microbatch_group_size_per_vp_stage" ? "group" : field;
    const auto known = std::ranges::find(kParameters, std::string_view(key), &PlanParameter::key);
    if (known == kParameters.end() || (known->kind != ParameterKind::kBoolean && key != "group") ||
        key == "forward_only") {
      return Error{ErrorCode::kUnsupported,
                   fmt::format("--config: $.{}: no field that decides what is sent", key)};
    }
    if (key == "group" ? !value.is_string() && !value.is_number_integer() : !value.is_boolean()) {
      return Error{ErrorCode::kUnsupported,
                   fmt::format("--config: $.{}: expected {}", key,
                               key == "group" ? "a number or a text" : "true or false")};
    }
    arguments.values[key] = key == "group" && !value.is_string() ? PlanJson(value.dump()) : value;
  }
  return std::nullopt;
}

/// Flags that would do nothing are refused: who gives them expects something.
std::optional<Error> check_used(const PlanArguments& arguments, ScheduleFramework framework) {
  struct Use {
    std::string_view key;
    ScheduleFramework framework;
  };
  constexpr std::array kUses = {Use{"post_validation", ScheduleFramework::kZeroBubble},
                                Use{"batch_p2p_comm", ScheduleFramework::kMegatron},
                                Use{"batch_p2p_sync", ScheduleFramework::kMegatron},
                                Use{"overlap_p2p_comm", ScheduleFramework::kMegatron},
                                Use{"overlap_p2p_comm_warmup_flush", ScheduleFramework::kMegatron},
                                Use{"variable_seq_lengths", ScheduleFramework::kMegatron},
                                Use{"mtp_standalone", ScheduleFramework::kMegatron},
                                Use{"group", ScheduleFramework::kMegatron},
                                Use{"microbatch_group_size_per_vp_stage", ScheduleFramework::kMegatron},
                                Use{"config", ScheduleFramework::kMegatron},
                                Use{"csv", ScheduleFramework::kTorch},
                                Use{"old_letters", ScheduleFramework::kTorch}};
  if (arguments.has("version") && framework != ScheduleFramework::kDeepSpeed && framework != ScheduleFramework::kTorch &&
      framework != ScheduleFramework::kTorchRuntime) {
    return Error{ErrorCode::kUsage, "--version is for --framework deepspeed, torch and torch-runtime"};
  }
  for (const Use& use : kUses) {
    if (use.framework == framework || !arguments.has(use.key)) continue;
    const auto* const owner = std::ranges::find(kFrameworks, use.framework, &NamedFramework::framework);
    return Error{ErrorCode::kUsage, fmt::format("--{} is for --framework {}", dashed(use.key), owner->name)};
  }
  return std::nullopt;
}

std::optional<bool> optional_boolean(const PlanArguments& arguments, std::string_view key) {
  if (!arguments.has(key)) return std::nullopt;
  return arguments.boolean(key, false);
}

Result<plan::ScheduleQuery> query_of(PlanArguments& arguments, ScheduleFramework framework) {
  if (const auto error = unfold_config(arguments)) return *error;
  if (const auto error = check_used(arguments, framework)) return *error;
  plan::ScheduleQuery query{.framework = framework};
  constexpr std::array<std::string_view, 2> kName = {"name", "schedule"}, kStages = {"stages", "pp"};
  constexpr std::array<std::string_view, 3> kVirtual = {"virtual", "vp", "chunks"},
                                            kMicroBatches = {"micro-batches", "microbatches", "num_chunks"};
  if (arguments.has("micro_batches")) arguments.values["micro-batches"] = arguments.values["micro_batches"];

  const auto name = one_of(arguments, kName);
  const auto stages = one_of(arguments, kStages);
  const auto chunks = one_of(arguments, kVirtual);
  const auto micro_batches = one_of(arguments, kMicroBatches);
  for (const auto* one : {&name, &stages, &chunks, &micro_batches}) {
    if (!*one) return one->error();
  }
  if (stages->is_null()) return Error{ErrorCode::kUsage, "--stages is required"};
  if (micro_batches->is_null()) return Error{ErrorCode::kUsage, "--micro-batches is required"};
  query.stages = stages->get<std::int64_t>();
  query.micro_batches = micro_batches->get<std::int64_t>();
  if (!chunks->is_null()) query.virtual_stages = chunks->get<std::int64_t>();
  if (arguments.has("csv")) {
    query.csv_path = arguments.text("csv", "");
    const Result<MappedFile> file = MappedFile::open(query.csv_path);
    if (!file) return file.error();
    query.csv = file->contents();
  }
  if (name->is_null() && query.csv_path.empty()) return Error{ErrorCode::kUsage, "--name is required"};
  query.name = name->is_null() ? query.csv_path : name->get<std::string>();
  query.forward_only = arguments.boolean("forward_only", false);
  query.old_letters = arguments.boolean("old_letters", false);
  const bool of_torch = query.framework == ScheduleFramework::kTorch || query.framework == ScheduleFramework::kTorchRuntime;
  const std::string version = arguments.text("version", of_torch ? "2.14" : "NEW");
  if (of_torch) {
    query.torch_version = version;
  } else if (version != "OLD" && version != "NEW") {
    return Error{ErrorCode::kUsage, fmt::format("--version takes OLD or NEW, not '{}'", version)};
  }
  query.old_version = version == "OLD";
  query.batch_p2p_comm = optional_boolean(arguments, "batch_p2p_comm");
  query.batch_p2p_sync = optional_boolean(arguments, "batch_p2p_sync");
  query.overlap_p2p_comm = optional_boolean(arguments, "overlap_p2p_comm");
  query.overlap_p2p_comm_warmup_flush = optional_boolean(arguments, "overlap_p2p_comm_warmup_flush");
  query.variable_seq_lengths = optional_boolean(arguments, "variable_seq_lengths");
  query.mtp_standalone = optional_boolean(arguments, "mtp_standalone");
  query.post_validation = optional_boolean(arguments, "post_validation");
  constexpr std::array<std::string_view, 2> kGroup = {"group", "microbatch_group_size_per_vp_stage"};
  const auto group = one_of(arguments, kGroup);
  if (!group) return group.error();
  if (!group->is_null()) query.group = group->get<std::string>();
  if (arguments.has("num_stages")) query.total_stages = arguments.integer("num_stages", 0);
  return query;
}

int run_plan_schedule(std::span<const std::string_view> args) {
  const auto [name, rest] = take_framework(args);
  PlanArguments arguments;
  if (const auto done = parse_plan_arguments(kPlanScheduleSubcommand, kParameters, rest, arguments))
    return *done;
  const auto* const found = std::ranges::find(kFrameworks, name, &NamedFramework::name);
  if (found == kFrameworks.end()) {
    std::vector<std::string_view> names;
    for (const NamedFramework& framework : kFrameworks) names.push_back(framework.name);
    return usage_error(
        kPlanScheduleSubcommand,
        fmt::format("--framework takes one of {}{}", fmt::join(names, ", "), did_you_mean(name, names)));
  }
  const auto failed = [](const Error& error) {
    return error.code == ErrorCode::kUsage ? usage_error(kPlanScheduleSubcommand, error.message)
                                           : input_error(error);
  };
  const auto query = query_of(arguments, found->framework);
  if (!query) return failed(query.error());
  const Result<std::string> json = plan::schedule_json(*query);
  if (!json) return failed(json.error());
  return write_stdout(*json) ? kExitConsistent : kExitInternal;
}

}  // namespace

const Subcommand kPlanScheduleSubcommand = {
    .name = "plan schedule",
    .summary = "What each rank of a pipeline does in one step: computation, messages, waits, in order.",
    .usage =
        "plan schedule --framework deepspeed|megatron|torch|torch-runtime|zero-bubble|dualpipe --name NAME "
        "--stages P [--virtual V]"
        " --micro-batches M [PARAMETER]...",
    .run = run_plan_schedule,
};

}  // namespace lockstep
