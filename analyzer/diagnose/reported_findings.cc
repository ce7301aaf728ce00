// See the header. The rules, and why (from reports of hangs whose causes became known):
//  1. What a library compared is proof: mismatch errors of torch's wrapper, Horovod, DeepSpeed, DDP.
//  2. A coordinator that lists who did not come is proof of absence. Complementary lists are different branches.
//  3. Memory, signals, hardware, links and disks come before any inference from waiting ranks, wherever their line stands: in a
//     merged log the consequence may be printed first. Aborts by watchdogs (signal 6), closed connections and exceptions about
//     communication are consequences and decide nothing.
//  4. Ranks that wait in one number of one group with other calls or sizes differ. Numbers count per group, and a watchdog's line
//     does not name its group; so numbers that differ are compared only where the status lines name the same group.
//  5. One rank, or ranks that all agree, are no verdict; a rank that is one call ahead is nothing.
//  6. "Most likely caused by incorrect usages of collectives" is printed always; NCCL's warnings of a mismatch are as often
//     caused by transports: both decide nothing.
#include "diagnose/reported_findings.h"

#include "diagnose/reported_view.h"

namespace lockstep {

std::vector<Draft> reported_drafts(const ReportedEvidence& reported, const Job& job, bool decided) {
  if (reported.empty()) return {};
  ReportedView view(reported, job);
  if (!decided) add_compared(view);
  add_reported_events(view);
  if (decided) return view.take();
  add_reported_absence(view);
  // What is inferred is asked only where nothing is told.
  if (view.undecided() && !add_unequal_waits(view) && !add_unequal_progress(view)) add_unequal_calls(view);
  if (view.undecided()) add_stack_differences(view);
  if (view.undecided()) add_launch_counts(view);
  if (view.undecided()) add_pauses(view);
  if (view.undecided()) job.programs().empty() ? add_open_logs(view) : add_hints_to_open(view);
  return view.take();
}

}  // namespace lockstep
