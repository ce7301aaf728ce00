// What the rules about logs share: the events, the calls that ranks wait in, and how a finding is made of them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "diagnose/draft.h"
#include "model/job.h"
#include "model/reported.h"

namespace lockstep {

/// Reads "ALLREDUCE", "_ALLGATHER_BASE" and "all_gather" as one spelling.
std::string plain_op(std::string_view op);
/// Members of one call may pass other sizes.
bool has_free_size(std::string_view op);
/// Messages and coalesced groups have numbers of their own on each rank.
bool has_own_number(std::string_view op);

/// "rank 3"; "ranks 4-6"; "a rank".
std::string who(const ReportedEvent& event);
/// The frame that a stack stands in, and where the user called it.
std::string stack_text(const ReportedEvent& event);
/// Where a rank stands, in words: "ALLREDUCE 77 (8 elements in, 8 out) of process group 0(default_pg)".
std::string place_of(const ReportedEvent& event);

class ReportedView {
 public:
  using Event = ReportedEvent;
  using Events = std::vector<const Event*>;

  ReportedView(const ReportedEvidence& reported, const Job& job);

  const Job& job() const { return job_; }
  const ReportedEvidence& reported() const { return reported_; }
  const Events& of(ReportedKind kind) const { return by_kind_[static_cast<std::size_t>(kind)]; }
  /// Each work that a watchdog reported, once, with the group that the status line behind it names.
  const std::vector<Event>& waits() const { return waits_; }
  /// By rank, the call that it began last.
  Events last_calls() const;

  Draft& add(Verdict verdict, std::string_view finding_class, Severity severity, std::string title, std::string fix);
  /// File and line of the events, the first of them.
  void support(Finding& finding, const Events& events) const;
  void support_with_waits(Finding& finding) const;
  /// Adds where ranks wait, and what they had come to, to the explanation.
  void add_standing(Finding& finding) const;
  /// Where the ranks gave up after less than a few minutes: that this is so, and what takes longer. Else empty.
  std::string short_timeout() const;
  /// What to collect, given which ranks are seen.
  std::string next_evidence() const;
  bool undecided() const { return drafts_.empty(); }
  std::vector<Draft> take() { return std::move(drafts_); }

 private:
  static constexpr std::size_t kKinds = 10;
  void name_groups();
  Evidence evidence(const Event& event) const { return {reported_.files[event.file], event.line}; }

  const ReportedEvidence& reported_;
  const Job& job_;
  Events by_kind_[kKinds];
  std::vector<Event> waits_;
  std::vector<Draft> drafts_;
};

/// "rank 3 waits in X; ranks 0-2 wait in Y": equal texts once, with all their ranks; at most `most` of them.
std::string standing_text(const std::vector<const ReportedEvent*>& events, std::string_view verb, std::string_view verb_of_many, std::size_t most);

// The rules, by what they rest on. Each adds findings to the view where it applies.
void add_compared(ReportedView& view);                 ///< what a library compared
void add_reported_events(ReportedView& view);          ///< memory, signals, hardware, links, disks
void add_reported_absence(ReportedView& view);         ///< a coordinator lists who did not come
bool add_unequal_waits(ReportedView& view);            ///< one number, other calls
bool add_unequal_progress(ReportedView& view);         ///< members of one group far apart
bool add_unequal_calls(ReportedView& view);            ///< fingerprints of calls one by one
void add_stack_differences(ReportedView& view);        ///< stacks in different calls
void add_launch_counts(ReportedView& view);            ///< NCCL's RAS
void add_pauses(ReportedView& view);                   ///< a rank that is busy with other work
void add_open_logs(ReportedView& view);                ///< nothing decides: what is known, and what would
void add_hints_to_open(ReportedView& view);            ///< calls were read and do not decide; warnings beside them

/// Sides of a difference by what they call: with a majority the fewer of them, else all.
void set_minority(const std::vector<const ReportedEvent*>& sides, std::vector<std::int32_t> ranks, Finding& finding);
/// Whether sizes or kinds of calls differ.
std::string_view class_of_sides(const std::vector<const ReportedEvent*>& sides, const std::vector<const ReportedEvent*>& told);

}  // namespace lockstep
