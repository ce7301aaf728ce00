// See the header.
#include "diagnose/report_assembly.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>

namespace lockstep {
namespace {

class ReportAssembly {
 public:
  explicit ReportAssembly(const ReportInput& input)
      : job_(input.job), match_(input.match), seen_(input.seen), reported_(input.reported), comes_to_its_end_(input.comes_to_its_end) {}

  Report assemble(std::vector<Finding> findings) {
    Report report;
    report.run = {.name = job_.run().name, .attempt = job_.run().attempt, .others = job_.run().others};
    report.findings = std::move(findings);
    set_verdict(report);
    set_suspects(report);
    set_quality(report);
    report.progress.state = progress();
    if (seen_) report.progress.stalled_for_s = seen_->stalled_for_s;
    for (const Finding& finding : report.findings) {
      if (finding.verdict == Verdict::kInsufficient && !finding.fix.empty()) report.next_evidence.push_back(finding.fix);
    }
    return report;
  }

 private:
  void set_verdict(Report& report) const {
    std::size_t communicators = 0;
    for (const CommunicatorMatch& communicator : match_.communicators) communicators += communicator.positions > 0 ? 1 : 0;
    std::set<CommIndex> of_messages;
    for (const ChannelMatch& channel : match_.channels) {
      if (match_.communicators[to_size(channel.comm)].positions == 0) of_messages.insert(channel.comm);
    }
    communicators += of_messages.size();
    report.summary = fmt::format("{} rank{}, {} communicator{}, {} calls", job_.programs().size(),
                                 job_.programs().size() == 1 ? "" : "s", communicators, communicators == 1 ? "" : "s",
                                 job_.operation_count() + job_.earlier_call_count());
    const auto deciding = std::ranges::find_if(report.findings, decides);
    const auto open = std::ranges::find_if(report.findings, [](const Finding& finding) {
      return finding.severity == Severity::kNote &&
             (finding.verdict == Verdict::kOtherCause || finding.verdict == Verdict::kInsufficient);
    });
    if (deciding != report.findings.end()) {
      report.verdict = deciding->verdict;
    } else if (open != report.findings.end()) {
      report.verdict = open->verdict;
    } else {
      report.verdict = job_.programs().empty() ? Verdict::kInsufficient : Verdict::kConsistent;
    }
    switch (report.verdict) {
      case Verdict::kMismatch:
      case Verdict::kImbalance:
      case Verdict::kOrder:
      case Verdict::kDeadlock:
        report.action = Action::kFixCode;
        break;
      case Verdict::kOtherCause:
      case Verdict::kInsufficient:
        report.action = Action::kCollectMore;
        break;
      case Verdict::kConsistent:
        report.action = Action::kNone;
        break;
    }
    set_nodes(report);
  }

  /// Nodes are named only where their own evidence is the cause.
  void set_nodes(Report& report) const {
    if (report.verdict != Verdict::kOtherCause || report.findings.empty() || !report.findings.front().nodes.told) return;
    const Finding::Nodes& nodes = report.findings.front().nodes;
    report.action = Action::kInspectNodes;
    std::set<std::string> hosts(nodes.hosts.begin(), nodes.hosts.end());
    std::set<std::int32_t> ranks(nodes.ranks.begin(), nodes.ranks.end());
    for (const std::int32_t rank : nodes.ranks) {
      if (const std::string host = place_of(rank).host; !host.empty()) hosts.insert(host);
    }
    const auto is_named = [&](const std::string& host) { return hosts.contains(host); };
    for (const Program& program : job_.programs()) {
      if (is_named(program.place.host)) ranks.insert(program.rank);
    }
    for (const auto& [rank, reported] : reported_.places) {
      if (is_named(reported.place.host)) ranks.insert(rank);
    }
    report.action_ranks.assign(ranks.begin(), ranks.end());
    report.action_hosts.assign(hosts.begin(), hosts.end());
  }

  /// As the record of the rank says; what it does not say, as logs do.
  Place place_of(std::int32_t rank) const {
    const ProgramIndex program = job_.program_of_rank(rank);
    Place place = program == kNoProgram ? Place{} : job_.program(program).place;
    const auto reported = reported_.places.find(rank);
    if (reported == reported_.places.end()) return place;
    const Place& told = reported->second.place;
    if (place.host.empty()) place.host = told.host;
    if (place.pid == 0) place.pid = told.pid;
    if (!place.local_rank) place.local_rank = told.local_rank;
    if (place.device.empty()) place.device = told.device;
    return place;
  }

  void set_suspects(Report& report) const {
    if (report.findings.empty()) return;
    constexpr std::size_t kMost = 64;
    const Finding& first = report.findings.front();
    const Confidence confidence =
        !decides(first)                                                  ? Confidence::kPossible
        : first.divergent_meaning == DivergentMeaning::kNoMajority || first.verdict == Verdict::kDeadlock
            ? Confidence::kLikely
                                                                         : Confidence::kCertain;
    std::set<std::int32_t> told;
    const auto add = [&](std::int32_t rank, std::string_view role) {
      if (report.suspects.size() >= kMost || !told.insert(rank).second) return;
      const auto reported = reported_.places.find(rank);
      report.suspects.push_back({.rank = rank,
                                 .role = std::string(role),
                                 .confidence = confidence,
                                 .place = place_of(rank),
                                 .pod = reported == reported_.places.end() ? std::string{} : reported->second.pod});
    };
    if (first.severity == Severity::kPotential || first.severity == Severity::kUnsafe) return;
    for (const std::int32_t rank : first.divergent_ranks) add(rank, "cause");
    for (const WaitFor& wait : first.wait_for) add(wait.rank, "victim");
  }

  void set_quality(Report& report) const {
    const InputQuality& quality = job_.quality();
    report.input_quality.ranks_expected = quality.ranks_expected;
    report.input_quality.complete = quality.complete;
    report.input_quality.warnings = quality.warnings;
    for (const Program& program : job_.programs()) {
      report.input_quality.ranks_seen.push_back(program.rank);
      if (program.tail_missing || program.head_missing) report.input_quality.complete = false;
    }
  }

  ProgressState progress() const {
    if (seen_) return seen_->state;
    if (!comes_to_its_end_) return ProgressState::kStalled;
    const bool all_ended = std::ranges::all_of(job_.programs(), [](const Program& program) {
      return program.end.kind == EndKind::kExited || program.end.kind == EndKind::kKilled;
    });
    return all_ended ? ProgressState::kEnded : ProgressState::kUnknown;
  }

  const Job& job_;
  const MatchResult& match_;
  const std::optional<Observation>& seen_;
  const ReportedEvidence& reported_;
  const bool comes_to_its_end_;
};

}  // namespace

Report assemble_report(const ReportInput& input, std::vector<Finding> findings) {
  return ReportAssembly(input).assemble(std::move(findings));
}

}  // namespace lockstep
