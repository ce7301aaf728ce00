// Reports made by hand, for tests of what is printed.
#include "support/sample_reports.h"

#include <string>

namespace lockstep {
namespace {

OperationView call(std::int32_t rank, std::string op, std::string communicator, std::uint32_t seq,
                   std::vector<std::int32_t> members) {
  return {.rank = rank, .op = std::move(op), .communicator = std::move(communicator), .members = std::move(members),
          .seq = seq};
}

std::vector<std::int32_t> first_ranks(std::int32_t count) {
  std::vector<std::int32_t> ranks;
  for (std::int32_t rank = 0; rank < count; ++rank) ranks.push_back(rank);
  return ranks;
}

}  // namespace

Report deadlock_report() {
  OperationView norm = call(0, "all_reduce", "model", 3, {0, 1});
  norm.count = "1", norm.datatype = "f32", norm.redop = "sum", norm.state = "entered";
  norm.site = {{"opt/zero.py", "reduce_over_model", 1459}, {"opt/zero.py", "grad_norm", 1509}};
  norm.native_op = "all_reduce", norm.native_seq = 55, norm.file = "run.rank0.jsonl", norm.line = 55;
  OperationView loss = call(1, "broadcast", "pipe", 0, {0, 1});
  loss.peer = 1, loss.site = {{"pipe/engine.py", "share_loss", 531}}, loss.file = "run.rank1.jsonl", loss.line = 29;

  Finding finding;
  finding.verdict = Verdict::kDeadlock;
  finding.finding_class = "count_differs_by_local_state";
  finding.severity = Severity::kCertain;
  finding.title = "ranks 0 and 1 wait for each other";
  finding.models = {"lazy", "eager", "blocking"};
  finding.communicator = {.id = "G2", .name = "model", .ranks = {0, 1}};
  finding.position = {.seq = 3, .op = "all_reduce", .native_seq = 55, .native_op = "all_reduce"};
  finding.divergent_ranks = {0, 1};
  finding.divergent_meaning = DivergentMeaning::kNoMajority;
  finding.counts = {{.communicator = "model", .members = {0, 1}, .by_rank = {{0, 4}, {1, 3}}},
                    {.communicator = "model", .members = {0, 1}, .call_site = "grad_norm zero.py:1509",
                     .by_rank = {{0, 2}, {1, 1}}}};
  finding.wait_for = {{.rank = 0, .operation = norm, .waits_for = {1}}, {.rank = 1, .operation = loss, .waits_for = {0}}};
  finding.explanation =
      "calls on model [0,1] differ: rank 0 makes 4, rank 1 makes 3; grad_norm makes one for each optimizer group and "
      "the ranks own different numbers of them";
  finding.fix = "add up locally over all groups first and reduce once, or keep empty groups on every rank";
  finding.evidence = {{"run.rank0.jsonl", 55}, {"run.rank1.jsonl", 29}};

  Report report;
  report.verdict = Verdict::kDeadlock;
  report.run = {.name = "founding", .attempt = 1, .others = {"older"}};
  report.findings = {finding};
  report.suspects = {{.rank = 0, .role = "cause", .confidence = Confidence::kCertain,
                      .place = {.host = "n1", .pid = 4711, .local_rank = 0, .device = "GPU 0"}},
                     {.rank = 1, .role = "cause", .confidence = Confidence::kCertain}};
  report.action = Action::kFixCode;
  report.progress = {ProgressState::kStalled, 8.5};
  report.input_quality = {.ranks_expected = 2, .ranks_seen = {0, 1}};
  return report;
}

Report large_imbalance_report() {
  constexpr std::int32_t kRanks = 4096;
  Finding finding;
  finding.verdict = Verdict::kImbalance;
  finding.finding_class = "early_exit";
  finding.severity = Severity::kCertain;
  finding.title = "rank 7 exited before all_reduce #12 on world, 4095 ranks wait for it";
  finding.communicator = {.id = "w", .name = "world", .ranks = first_ranks(kRanks)};
  finding.position = {.seq = 12, .op = "all_reduce"};
  finding.divergent_ranks = {7};
  finding.divergent_meaning = DivergentMeaning::kMissing;
  finding.wait_for.push_back({.rank = 7, .why = "exited with status 0"});
  CallCounts counts{.communicator = "world", .members = first_ranks(kRanks)};
  for (std::int32_t rank = 0; rank < kRanks; ++rank) {
    counts.by_rank[rank] = rank == 7 ? 12 : 13;
    if (rank == 7) continue;
    OperationView operation = call(rank, "all_reduce", "world", 12, first_ranks(kRanks));
    operation.site = {{"train.py", "step", 88}};
    finding.wait_for.push_back({.rank = rank, .operation = operation, .waits_for = {7}});
  }
  finding.counts = {counts};
  finding.explanation = "rank 7 made 12 calls on world and exited with status 0; the others made 13";
  finding.fix = "let all ranks agree on when to stop";

  Report report;
  report.verdict = Verdict::kImbalance;
  report.findings = {finding};
  report.action = Action::kFixCode;
  report.input_quality = {.ranks_expected = kRanks, .ranks_seen = first_ranks(kRanks)};
  return report;
}

Report size_report() {
  OperationView small = call(1, "all_reduce", "dp", 5, {0, 1});
  small.count = "409598", small.datatype = "f32", small.redop = "sum";
  OperationView large = call(0, "all_reduce", "dp", 5, {0, 1});
  large.count = "409600", large.datatype = "f32", large.redop = "sum";
  Finding finding;
  finding.verdict = Verdict::kMismatch;
  finding.finding_class = "size_differs";
  finding.severity = Severity::kUndefinedBehaviour;
  finding.title = "all_reduce #5 on dp has 409598 elements on rank 1 and 409600 on rank 0";
  finding.communicator = {.id = "dp", .name = "dp", .ranks = {0, 1}};
  finding.position = {.seq = 5, .op = "all_reduce"};
  finding.divergent_ranks = {0, 1};
  finding.divergent_meaning = DivergentMeaning::kNoMajority;
  finding.operations = {small, large};
  finding.explanation = "the sizes differ";
  finding.fix = "pad to the larger";
  Report report;
  report.verdict = Verdict::kMismatch;
  report.findings = {finding};
  report.action = Action::kFixCode;
  report.input_quality.ranks_seen = {0, 1};
  return report;
}

Report consistent_report() {
  Finding remark;
  remark.verdict = Verdict::kDeadlock;
  remark.finding_class = "relies_on_buffering";
  remark.severity = Severity::kUnsafe;
  remark.title = "ranks 0 and 1 both send before they receive";
  remark.models = {"blocking"};
  remark.divergent_ranks = {0, 1};
  remark.explanation = "it ends only if the first message is buffered";
  remark.fix = "receive first on one side";
  remark.evidence = {{"job.json", 0}};
  Report report;
  report.verdict = Verdict::kConsistent;
  report.summary = "2 ranks made the same 40 calls on 3 communicators and ended";
  report.findings = {remark};
  report.progress.state = ProgressState::kEnded;
  report.input_quality = {.ranks_expected = 2, .ranks_seen = {0, 1}};
  return report;
}

Report other_cause_report() {
  Finding finding;
  finding.verdict = Verdict::kOtherCause;
  finding.finding_class = "out_of_memory";
  finding.severity = Severity::kNote;
  finding.title = "rank 3 ran out of memory 12 s before the others began to wait";
  finding.divergent_ranks = {3};
  finding.divergent_meaning = DivergentMeaning::kAbsent;
  Report report;
  report.verdict = Verdict::kOtherCause;
  report.findings = {finding};
  report.suspects = {{.rank = 3, .role = "cause", .confidence = Confidence::kLikely, .place = {.host = "node-17"}}};
  report.action = Action::kInspectNodes;
  report.action_ranks = {3};
  report.next_evidence = {"the kernel log of node-17"};
  report.input_quality = {.ranks_expected = 4, .ranks_seen = {0, 1, 3}, .complete = false};
  return report;
}

Report hostile_report() {
  const std::string evil = "a\x1b[31m\nb\xff\xc2\x9b\xe2\x80\xae\x7f";
  std::string prose;
  for (int i = 0; i < 400; ++i) prose += "word" + evil + " ";
  OperationView operation = call(0, "all_reduce", evil, 1, {0, 1, 5, 9, 10, 22});
  operation.site = {{evil, evil, 3}, {evil, evil, 4}}, operation.label = prose, operation.payload = evil;
  operation.datatype = evil, operation.count = evil, operation.redop = evil, operation.file = evil;

  Finding finding;
  finding.verdict = Verdict::kDeadlock;
  finding.finding_class = "order_differs";
  finding.severity = Severity::kCertain;
  finding.title = prose;
  finding.communicator = {.id = evil, .name = evil, .ranks = {0, 1}};
  finding.explanation = prose;
  finding.fix = prose;
  for (std::int32_t rank = 0; rank < 300; ++rank) {
    operation.rank = rank, operation.seq = static_cast<std::uint32_t>(rank), operation.count += 'x';
    finding.wait_for.push_back({.rank = rank, .operation = operation, .waits_for = {rank + 1, rank * 7 + 3}, .why = evil});
    finding.operations.push_back(operation);
    finding.counts.push_back({.communicator = evil, .call_site = prose, .by_rank = {{0, 1}, {rank + 1, 2}}});
    finding.evidence.push_back({evil, 1});
  }
  finding.wait_for_omitted = 1000;

  Report report;
  report.verdict = Verdict::kDeadlock;
  report.run = {.name = evil, .attempt = 2, .others = {prose, prose}};
  report.findings = {finding};
  finding.wait_for.clear(), finding.operations.clear(), finding.counts.clear(), finding.evidence.clear();
  report.findings.resize(50, finding);
  for (std::int32_t rank = 0; rank < 50; ++rank)
    report.suspects.push_back({.rank = rank, .role = "cause", .place = {.host = evil, .pid = 1, .device = prose}});
  report.next_evidence.assign(30, prose);
  report.summary = prose;
  report.input_quality = {.ranks_expected = std::size_t{1} << 40, .ranks_seen = {0, 5}, .complete = false,
                          .warnings = std::vector<std::string>(60, prose)};
  return report;
}

std::vector<Report> sample_reports() {
  return {deadlock_report(), large_imbalance_report(), size_report(), consistent_report(), other_cause_report(),
          hostile_report()};
}

}  // namespace lockstep
