// `lockstep plan import`: what others wrote about a run, as something that the other commands read.
#include <CLI/CLI.hpp>
#include <string>

#include "base/mapped_file.h"
#include "cli/arguments.h"
#include "cli/import_deepspeed.h"
#include "cli/import_megatron.h"
#include "cli/output.h"
#include "cli/plan_parts.h"
#include "cli/schedule_csv.h"
#include "read/job_json_writer.h"

namespace lockstep {
namespace {

int import_torch(const std::string& path, bool old_letters, bool first_step) {
  const Result<MappedFile> file = MappedFile::open(path);
  if (!file) return input_error(file.error());
  const auto import = plan::import_torch_csv(file->contents(), path,
                                       old_letters ? plan::TorchLetters::kOld : plan::TorchLetters::kNew);
  if (!import) return input_error(import.error());
  for (const plan::TorchProblem& problem : import->problems) print_warning(schedule_csv_problem(path, problem));
  if (import->timeline) {
    bool written = true;
    write_job_json(schedule_csv_job(*import, first_step),
                   [&](std::string_view piece) { written = written && write_stdout(piece); });
    if (!written) return kExitInternal;
  }
  return import->problems.empty() ? kExitConsistent : kExitFindings;
}

int import_megatron_run(const std::string& from, bool yaml, std::int64_t world, const std::string& version) {
  // The arguments themselves begin with a dash, no file that is meant does.
  const bool is_text = !yaml && from.starts_with("--");
  const auto read = [&]() -> Result<MegatronArguments> {
    if (is_text) return MegatronArguments::from_command_line(from, "--megatron");
    const auto file = MappedFile::open(from);
    if (!file) return file.error();
    return yaml ? MegatronArguments::from_yaml(file->contents(), from)
                : MegatronArguments::from_command_line(file->contents(), from);
  };
  auto arguments = read();
  if (!arguments) return input_error(arguments.error());
  const auto import = import_megatron(*arguments, world, version);
  if (!import) return input_error(import.error());
  for (const std::string& sentence : import->assumed) print_warning(sentence);
  return write_stdout(import->plan) ? kExitConsistent : kExitInternal;
}

int run_plan_import(std::span<const std::string_view> args) {
  std::string torch_csv;
  bool old_letters = false;
  bool first_step = false;
  DeepSpeedImport deepspeed;
  CLI::App app;
  app.add_option(
      "--torch-csv", torch_csv,
      "a schedule of torch.distributed.pipelining, a row for each rank, with or without SEND and RECV");
  app.add_flag("--old-letters", old_letters, "the file says B for the input's gradient and BW for all of it");
  app.add_flag("--first-step", first_step,
               "with the messages that only the first step exchanges: neighbours and shapes");
  app.add_option("--deepspeed", deepspeed.config_path, "ds_config.json of a run: becomes a plan, together with --layers");
  app.add_option("--layers", deepspeed.layers_path, "its layers as in a plan: an array, or an object with the member layers");
  app.add_option("--pipe", deepspeed.pipe, "its pipeline stages")->capture_default_str();
  app.add_option("--data", deepspeed.data, "its data-parallel ranks")->capture_default_str();
  app.add_option("--tensor", deepspeed.tensor, "its tensor slices")->capture_default_str();
  app.add_option("--partition", deepspeed.partition, "partition_method of its PipelineModule; default parameters");
  app.add_option("--groups", deepspeed.groups, "how its script makes parameter groups: single, megatron, one_dimensional, three_way")
      ->capture_default_str();
  std::string megatron;
  std::string megatron_yaml;
  std::int64_t world = 0;
  app.add_option("--megatron", megatron, "a file with the command line of a Megatron run, or, after --megatron=, the arguments themselves: becomes a plan");
  app.add_option("--megatron-yaml", megatron_yaml, "its arguments as YAML");
  app.add_option("--world", world, "its ranks, where the launcher's arguments do not say")->check(CLI::Range(1, 1 << 20));
  app.add_option("--version", deepspeed.version, "release of the framework");
  if (const auto done = parse_arguments(app, kPlanImportSubcommand, args)) return *done;
  int sources = 0;
  for (const std::string* source : {&torch_csv, &deepspeed.config_path, &megatron, &megatron_yaml}) sources += source->empty() ? 0 : 1;
  if (sources != 1)
    return usage_error(kPlanImportSubcommand, "one of --torch-csv, --deepspeed, --megatron and --megatron-yaml is required");
  if (!megatron.empty() || !megatron_yaml.empty())
    return import_megatron_run(megatron.empty() ? megatron_yaml : megatron, megatron.empty(), world, deepspeed.version);
  if (!deepspeed.config_path.empty()) {
    if (deepspeed.layers_path.empty()) return usage_error(kPlanImportSubcommand, "--deepspeed needs --layers: the configuration has none");
    const auto import = import_deepspeed(deepspeed);
    if (!import) return input_error(import.error());
    for (const std::string& sentence : import->notes) print_warning(sentence);
    return write_stdout(import->plan) ? kExitConsistent : kExitInternal;
  }
  return import_torch(torch_csv, old_letters, first_step);
}

}  // namespace

const Subcommand kPlanImportSubcommand = {
    .name = "plan import",
    .summary = "A torch pipelining CSV as a Job to check; a DeepSpeed configuration or Megatron arguments as a plan to gate.",
    .usage = "plan import (--torch-csv FILE [--old-letters] [--first-step] | --deepspeed CONFIG --layers FILE [--pipe P] [--data D] "
             "[--tensor T] [--partition METHOD] [--groups RULE] | (--megatron FILE | --megatron-yaml FILE) [--world N]) [--version V]",
    .run = run_plan_import,
};

}  // namespace lockstep
