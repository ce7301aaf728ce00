// Diagnoses every iteration of a plan or schedule, or a run, and puts the plan's reasons into the findings.
#include "cli/gate_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "base/mapped_file.h"
#include "cli/alike_findings.h"
#include "cli/plan_file.h"
#include "cli/schedule_csv.h"
#include "diagnose/diagnose.h"
#include "plan/read_plan.h"
#include "plan/variance.h"
#include "plan/versions.h"
#include "read/load.h"

namespace lockstep {
namespace {

constexpr std::array kIterations = {plan::Iteration::kFirst, plan::Iteration::kSecond,
                                    plan::Iteration::kSteady, plan::Iteration::kSkipped};

CommIndex find_communicator(const Job& job, const std::string& id) {
  const auto communicators = job.communicators();
  const auto found = std::ranges::find(communicators, id, &Communicator::id);
  return found == communicators.end() ? kNoComm
                                      : CommIndex{static_cast<std::uint32_t>(found - communicators.begin())};
}

/// "a, b and c"
std::string listed(const std::vector<std::string>& words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i)
    text += fmt::format("{}{}", i == 0 ? "" : i + 1 == words.size() ? " and " : ", ", words[i]);
  return text;
}

/// Why the calls of a finding's communicator differ, in the plan's words. `variances` are of one quantity, and differ in
/// the code that depends on it.
std::string reason_text(const plan::Expansion& expansion, std::span<const plan::Variance> variances) {
  std::vector<std::string> functions;
  for (const plan::Variance& variance : variances) {
    const CallSite& site = expansion.job.site(variance.site);
    if (!site.frames.empty() && std::ranges::find(functions, site.frames[0].function) == functions.end())
      functions.push_back(site.frames[0].function);
  }
  const plan::Variance& first = variances.front();
  const plan::Quantity& quantity = expansion.quantities[first.quantity];
  const bool one = functions.size() < 2;
  std::string text = listed(functions);
  if (!quantity.per.empty())
    text += fmt::format(" make{} {} calls once per {}, and the {}", one ? "s" : "", one ? "its" : "their", quantity.per,
                        variance_text(expansion, first));
  else
    text += fmt::format(" depend{} on something that is not the same on all members: {}", one ? "s" : "",
                        variance_text(expansion, first));
  constexpr std::size_t kMostReasons = 4;
  const std::size_t shown = std::min(first.reasons.size(), kMostReasons);
  if (shown > 0)
    text += fmt::format("; {}", fmt::join(first.reasons.begin(), first.reasons.begin() + static_cast<std::ptrdiff_t>(shown), "; "));
  return text;
}

/// Line of a field of the outermost object, from 1; 1 where there is no such field.
std::uint32_t line_of_field(std::string_view text, std::string_view field) {
  std::uint32_t line = 1;
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\n') ++line;
    if (text[i] == '{' || text[i] == '[') ++depth;
    if (text[i] == '}' || text[i] == ']') --depth;
    if (text[i] != '"') continue;
    std::size_t end = i + 1;
    while (end < text.size() && text[end] != '"') end += text[end] == '\\' ? std::size_t{2} : std::size_t{1};
    const bool is_key = depth == 1 && text.substr(i + 1, std::min(end, text.size()) - i - 1) == field;
    if (is_key && text.find_first_not_of(" \t\r\n", end + 1) == text.find(':', end)) return line;
    i = end;
  }
  return 1;
}

struct PlanSource {
  const std::string& path;
  std::string_view text{};
};

void add_reasons(const plan::Expansion& expansion, const PlanSource& source, Finding& finding) {
  finding.evidence = {{source.path, 1}};
  if (!finding.communicator) return;
  const CommIndex comm = find_communicator(expansion.job, finding.communicator->id);
  if (comm == kNoComm) return;
  auto variances = plan::find_variances(expansion, comm);
  if (variances.empty()) return;
  // Those of one quantity together, in the order in which the first of each is met.
  std::vector<plan::QuantityIndex> order;
  for (const plan::Variance& variance : variances)
    if (std::ranges::find(order, variance.quantity) == order.end()) order.push_back(variance.quantity);
  std::ranges::stable_sort(variances, {}, [&](const plan::Variance& variance) {
    return std::ranges::find(order, variance.quantity) - order.begin();
  });
  // What follows the first sentence of a difference in number guesses at what the plan knows.
  const bool differs_in_number = finding.verdict == Verdict::kImbalance || finding.verdict == Verdict::kDeadlock;
  const std::size_t kept = differs_in_number ? finding.explanation.find(';') : std::string::npos;
  const std::string first_sentence = finding.explanation.substr(0, kept);
  finding.evidence = {
      {source.path, line_of_field(source.text, expansion.quantities[variances[0].quantity].field)}};
  std::vector<std::string> reasons;
  std::vector<std::string> fixes;
  for (std::size_t i = 0; i < variances.size();) {
    std::size_t end = i;
    while (end < variances.size() && variances[end].quantity == variances[i].quantity) ++end;
    reasons.push_back(reason_text(expansion, std::span(variances).subspan(i, end - i)));
    const std::string& fix = expansion.quantities[variances[i].quantity].fix;
    i = end;
    if (!fix.empty() && std::ranges::find(fixes, fix) == fixes.end()) fixes.push_back(fix);
  }
  finding.explanation = fmt::format("{}; {}", first_sentence, fmt::join(reasons, "; "));
  if (!fixes.empty()) finding.fix = fmt::format("{}", fmt::join(fixes, "; "));
}

/// Findings that say the same of several iterations are one, and so are those that one cause makes look different: on
/// one communicator, and with the plan's own words for what to do.
bool same_finding(const Finding& a, const Finding& b) {
  const auto site = [](const Finding& finding) {
    return finding.operations.empty() ? std::string() : fmt::format("{}", finding.operations[0].op);
  };
  const auto id = [](const Finding& finding) {
    return finding.communicator ? finding.communicator->id : std::string();
  };
  if (a.communicator && id(a) == id(b) && !a.fix.empty() && a.fix == b.fix && a.evidence == b.evidence) return true;
  return a.finding_class == b.finding_class && a.verdict == b.verdict && id(a) == id(b) &&
         site(a) == site(b) && a.divergent_ranks == b.divergent_ranks;
}

void merge_report(Report& whole, Report&& part, std::string_view iteration) {
  for (Finding& finding : part.findings) {
    const auto known = std::ranges::find_if(
        whole.findings, [&](const Finding& other) { return same_finding(other, finding); });
    if (known != whole.findings.end()) continue;
    if (iteration != "first") finding.explanation += fmt::format(" (from the {} iteration on)", iteration);
    whole.findings.push_back(std::move(finding));
  }
  const auto rank = [](Verdict verdict) {
    return verdict == Verdict::kConsistent ? 0 : verdict == Verdict::kInsufficient ? 1 : 2;
  };
  if (rank(part.verdict) <= rank(whole.verdict)) return;
  whole.verdict = part.verdict;
  whole.suspects = std::move(part.suspects);
  whole.action = part.action;
  whole.action_ranks = std::move(part.action_ranks);
  whole.action_hosts = std::move(part.action_hosts);
  whole.summary = std::move(part.summary);
  whole.next_evidence = std::move(part.next_evidence);
}

struct IterationReport {
  Report report{};
  plan::Expansion expansion{};
};

/// Of one iteration, or of several one after the other. Ranks that are alike are replayed once; where something is wrong
/// and the plan is small enough, it is looked at again in all ranks, so that every rank is named in its own words.
Result<IterationReport> iterations_report(const plan::Plan& plan, const PlanSource& source,
                                          std::span<const plan::Iteration> iterations, bool all_ranks) {
  constexpr std::uint64_t kFewCalls = 2'000'000;
  constexpr std::uint64_t kMostCalls = 80'000'000;  // 5 GiB
  auto expansion = plan::expand(plan, iterations, all_ranks ? plan::Ranks::kAll : plan::Ranks::kAlikeOnce);
  if (!expansion)
    return Error{expansion.error().code, fmt::format("{}: {}", source.path, expansion.error().message)};
  Report report = diagnose(expansion->job);
  if (expansion->alike && (!report.findings.empty() || report.verdict != Verdict::kConsistent)) {
    const std::uint64_t calls = call_count(*expansion);
    const bool tells = can_tell_of_all_ranks(*expansion);
    if (calls <= kFewCalls || (!tells && calls <= kMostCalls)) return iterations_report(plan, source, iterations, true);
    // Who is in the wrong is not decided by those that happen to be left.
    if (!tells)
      for (Finding& finding : report.findings) finding.divergent_meaning = DivergentMeaning::kNoMajority;
  }
  const bool has_skips = std::ranges::any_of(plan.layers, [](const plan::Layer& layer) { return !layer.skips_to.empty(); });
  for (Finding& finding : report.findings) {
    add_reasons(*expansion, source, finding);
    // Without connections of its own the batches of a plan are those that the framework makes for everybody: that they
    // might hang where a batch completes as a whole says nothing against this plan.
    if (finding.finding_class == "batch_coupling" && !has_skips) finding.severity = Severity::kNote;
  }
  tell_of_all_ranks(*expansion, report);
  return IterationReport{std::move(report), *std::move(expansion)};
}

bool is_certain_deadlock(const Finding& finding) {
  return finding.severity == Severity::kCertain && finding.verdict == Verdict::kDeadlock;
}

/// As above. A deadlock that goes away once the shapes which are sent before tensors are copied away is none that must
/// come: NCCL buffers messages as small as these.
Result<IterationReport> judged_report(const plan::Plan& plan, const PlanSource& source,
                                      std::span<const plan::Iteration> iterations, bool all_ranks) {
  auto strict = iterations_report(plan, source, iterations, all_ranks);
  if (!strict || !plan.schedule.variable_shapes || std::ranges::none_of(strict->report.findings, is_certain_deadlock))
    return strict;
  plan::Plan with_buffers = plan;
  with_buffers.schedule.shapes_are_buffered = true;
  auto lenient = iterations_report(with_buffers, source, iterations, all_ranks);
  if (!lenient || std::ranges::any_of(lenient->report.findings, is_certain_deadlock)) return strict;
  // What only may go wrong is that of the plan as it is.
  const auto only_may = [](const Finding& finding) { return finding.severity > Severity::kContractViolation; };
  std::erase_if(lenient->report.findings, only_may);
  for (Finding& finding : strict->report.findings) {
    if (is_certain_deadlock(finding)) {
      finding.severity = Severity::kUnsafe;
      finding.finding_class = "relies_on_buffering";
      finding.explanation +=
          "; so it is where a send waits for its receive: the run goes on as long as NCCL copies the shapes away (24 bytes, "
          "_communicate_shapes) before they are received";
      finding.fix = "have more micro-batches than stages, or none of them with shapes of its own (variable_seq_lengths)";
    } else if (!only_may(finding)) {
      continue;
    }
    lenient->report.findings.push_back(std::move(finding));
  }
  return IterationReport{std::move(lenient->report), std::move(strict->expansion)};
}

/// Somebody waits for a rank that has come to the end of the iteration.
bool waits_for_the_end(const Report& report) {
  return report.verdict == Verdict::kImbalance && std::ranges::any_of(report.findings.front().wait_for, [](const WaitFor& wait) {
    return !wait.why.empty();
  });
}

plan::Iteration next_iteration(plan::Iteration iteration) {
  return iteration == plan::Iteration::kFirst ? plan::Iteration::kSecond : plan::Iteration::kSteady;
}

Result<Report> plan_report(const plan::Plan& plan, const PlanSource& source, CallTotals* totals, bool all_ranks) {
  Report whole;
  bool first = true;
  std::uint64_t calls = 0;
  std::size_t iterations = 0;
  for (const plan::Iteration iteration : kIterations) {
    if (iteration == plan::Iteration::kSkipped && !plan.optimizer.loss_scale) continue;
    auto one = judged_report(plan, source, std::span(&iteration, 1), all_ranks);
    if (!one) return one.error();
    // What is left over at the end of one iteration is met by the next: nobody exits there.
    if (waits_for_the_end(one->report)) {
      const std::array two{iteration, next_iteration(iteration)};
      auto goes_on = judged_report(plan, source, two, all_ranks);
      if (!goes_on) return goes_on.error();
      if (goes_on->report.verdict != Verdict::kConsistent) {
        one->report = std::move(goes_on->report);
        for (Finding& finding : one->report.findings)
          if (!finding.counts.empty()) finding.explanation += "; counted over two iterations";
      }
    }
    calls += call_count(one->expansion);
    if (totals != nullptr) totals->add(one->expansion, iteration_name(iteration));
    ++iterations;
    if (first)
      whole = std::move(one->report);
    else
      merge_report(whole, std::move(one->report), iteration_name(iteration));
    first = false;
  }
  if (whole.findings.empty() && whole.verdict == Verdict::kConsistent)
    whole.summary = fmt::format(
        "all {} ranks make the same calls in an order that can finish: {} kinds of iterations, {} calls",
        whole.input_quality.ranks_seen.size(), iterations, calls);
  const std::string_view note = plan::unchecked_version_note(framework_name(plan.framework), plan.version);
  if (!note.empty())
    whole.input_quality.warnings.push_back(fmt::format(
        "{}: $.framework.version is {}: {}", source.path, plan.version.empty() ? "missing" : plan.version, note));
  return whole;
}

/// What the text of a schedule says against it: torch refuses it, or runs it and does something twice or not at all.
Finding problem_finding(const std::string& path, const plan::TorchProblem& problem) {
  Finding finding;
  finding.verdict = Verdict::kMismatch;
  finding.finding_class = problem.checked_upstream ? "call_refused" : "extra_call";
  finding.severity = problem.checked_upstream ? Severity::kContractViolation : Severity::kPotential;
  finding.title = fmt::format("{} row {}{}: {}", problem.checked_upstream ? "torch refuses" : "torch does not check",
                              problem.rank + 1, problem.cell ? fmt::format(", cell {}", *problem.cell + 1) : "",
                              problem.message);
  finding.divergent_ranks = {static_cast<std::int32_t>(problem.rank)};
  finding.divergent_meaning = DivergentMeaning::kNoMajority;
  finding.explanation = schedule_csv_problem(path, problem);
  finding.fix = "correct this cell of the schedule";
  finding.evidence = {{path, static_cast<std::uint32_t>(problem.rank) + 1}};
  return finding;
}

Result<Report> schedule_report(const PlanSource& source, CallTotals* totals) {
  const auto import =
      plan::import_torch_csv(source.text, source.path, schedule_csv_letters(source.text));
  if (!import) return import.error();
  Report whole;
  whole.verdict = Verdict::kConsistent;
  std::size_t calls = 0;
  if (import->timeline) {
    for (const bool first_step : {true, false}) {
      const Job job = schedule_csv_job(*import, first_step);
      Report report = diagnose(job);
      for (Finding& finding : report.findings) finding.evidence = {{source.path, 1}};
      calls += job.operation_count();
      const plan::Iteration iteration = first_step ? plan::Iteration::kFirst : plan::Iteration::kSteady;
      if (totals != nullptr) totals->add(job, iteration_name(iteration));
      if (first_step)
        whole = std::move(report);
      else
        merge_report(whole, std::move(report), iteration_name(iteration));
    }
  }
  if (whole.findings.empty() && whole.verdict == Verdict::kConsistent)
    whole.summary = fmt::format("the {} rows of the schedule can finish: {} stages, {} micro-batches, {} calls",
                                import->order.size(), import->stages, import->micro_batches, calls);
  Report problems;
  problems.verdict = Verdict::kConsistent;
  for (const plan::TorchProblem& problem : import->problems) {
    whole.findings.push_back(problem_finding(source.path, problem));
    if (!problem.checked_upstream) continue;
    problems.verdict = Verdict::kMismatch;
    problems.action = Action::kFixCode;
  }
  merge_report(whole, std::move(problems), iteration_name(plan::Iteration::kFirst));
  std::ranges::stable_sort(whole.findings, {}, &Finding::severity);
  return whole;
}

}  // namespace

Result<Report> gate_report(std::span<const std::string> inputs, CallTotals* totals, bool all_ranks) {
  if (inputs.size() == 1 && inputs[0] != "-") {
    const auto file = MappedFile::open(inputs[0]);
    if (file && looks_like_plan(file->contents())) {
      const auto plan = plan::read_plan(file->contents(), inputs[0]);
      if (!plan) return plan.error();
      return plan_report(*plan, {inputs[0], file->contents()}, totals, all_ranks);
    }
    if (file && looks_like_schedule_csv(file->contents()))
      return schedule_report({inputs[0], file->contents()}, totals);
  }
  if (inputs.size() > 1)
    for (const std::string& input : inputs) {
      if (input == "-") continue;
      const auto file = MappedFile::open(input);
      if (file && (looks_like_plan(file->contents()) || looks_like_schedule_csv(file->contents())))
        return Error{ErrorCode::kUsage, fmt::format("{}: a plan or schedule is gated alone; --base OLD --head NEW compares two", input)};
    }
  const auto evidence = load_evidence(inputs);
  if (!evidence) return evidence.error();
  if (totals != nullptr) totals->add(evidence->job, "");
  return diagnose(evidence->job, std::nullopt, evidence->reported);
}

}  // namespace lockstep
