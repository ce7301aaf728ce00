// Builds a Job with the installed library and asks for a report.
#include <cstdio>
#include <vector>

#include "diagnose/diagnose.h"
#include "model/job_builder.h"
#include "report/json.h"

int main() {
  lockstep::JobBuilder builder;
  const std::vector<std::int32_t> members{0, 1};
  lockstep::Operation barrier;
  barrier.comm = builder.communicator("w", "world", members);
  barrier.kind = lockstep::OpKind::kBarrier;
  for (const std::int32_t rank : members) {
    builder.program(rank).operations = {barrier};
    builder.set_end(rank, {lockstep::EndKind::kExited, 0});
  }
  const lockstep::Report report = lockstep::diagnose(std::move(builder).build());
  std::fputs(lockstep::report_json(report).c_str(), stdout);
  return report.verdict == lockstep::Verdict::kConsistent ? 0 : 1;
}
