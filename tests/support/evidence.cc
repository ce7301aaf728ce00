// All from the naive replay: what it says was issued and completed; see the header.
#include "support/evidence.h"

#include <algorithm>

#include "support/oracle.h"

namespace lockstep::testing {
namespace {

bool is_bracket(const SketchOp& op) { return op.kind == OpKind::kGroupStart || op.kind == OpKind::kGroupEnd; }

OracleModel promised_model(const JobSketch& job) {
  return job.library == Library::kMpi ? OracleModel::kEager : OracleModel::kLazy;
}

/// Marks what happened in the run; with `drop`, leaves out the calls that no rank came to.
void mark(JobSketch& job, const OracleRun& run, bool drop) {
  for (std::size_t rank = 0; rank < job.programs.size(); ++rank) {
    std::vector<SketchOp> marked;
    std::size_t index = 0;  // in the built program, which has no brackets
    for (SketchOp op : job.programs[rank]) {
      if (is_bracket(op)) {
        marked.push_back(op);
        continue;
      }
      const bool made = index < run.issued[rank].size();  // not behind an exit
      const bool issued = made && run.issued[rank][index];
      if (op_class(op.kind) == OpClass::kMarker) {
        // no call: it has no state
      } else if (made && run.completed[rank][index]) {
        op.state = OpState::kCompleted;
      } else if (issued) {
        op.state = OpState::kEntered;
      }
      if (issued || !drop) marked.push_back(op);
      ++index;
    }
    if (drop) {  // brackets of groups that were never launched
      while (!marked.empty() && is_bracket(marked.back()) &&
             (marked.back().kind == OpKind::kGroupStart || marked.size() < 2 ||
              is_bracket(marked[marked.size() - 2]))) {
        marked.pop_back();
      }
    }
    job.programs[rank] = std::move(marked);
  }
}

}  // namespace

JobSketch as_recorded(const JobSketch& job) {
  JobSketch marked = job;
  mark(marked, run_naively(build_job(job), promised_model(job)), false);
  return marked;
}

JobSketch with_completed_rank(const JobSketch& job, std::size_t rank) {
  JobSketch marked = job;
  for (SketchOp& op : marked.programs[rank]) op.state = OpState::kCompleted;
  return marked;
}

JobSketch as_hung(const JobSketch& job) {
  JobSketch marked = job;
  const OracleRun run = run_naively(build_job(job), promised_model(job));
  mark(marked, run, true);
  for (const std::size_t rank : run.stuck) marked.ends[rank] = {.kind = EndKind::kRunning};
  return marked;
}

JobSketch live_snapshot(const JobSketch& correct, Random& random) {
  JobSketch cut = correct;
  std::vector<bool> ended(cut.programs.size(), true);
  for (std::size_t rank = 0; rank < cut.programs.size(); ++rank) {
    std::vector<SketchOp>& program = cut.programs[rank];
    std::size_t keep = program.size() - std::min(program.size(), random.below(program.size() + 1));
    // A launch is issued as a whole.
    while (keep > 0 && keep < program.size() && program[keep].launch != 0 &&
           program[keep].launch == program[keep - 1].launch) {
      --keep;
    }
    ended[rank] = keep == program.size();
    program.resize(keep);
  }
  const OracleRun run = run_naively(build_job(cut), promised_model(cut));
  mark(cut, run, true);
  for (const std::size_t rank : run.stuck) ended[rank] = false;
  for (std::size_t rank = 0; rank < ended.size(); ++rank) {
    if (!ended[rank]) cut.ends[rank] = {.kind = EndKind::kRunning};
  }
  return cut;
}

}  // namespace lockstep::testing
