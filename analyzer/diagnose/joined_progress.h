// What logs and stacks say of ranks that others wait for, joined with the calls of the others.
#pragma once

#include "diagnose/finding.h"
#include "model/job.h"
#include "model/reported.h"

namespace lockstep {

/// `finding`: ranks wait in a call for others of which there is no whole record. Where the status lines of a log say
/// for each of those how far it had come on that communicator, they decide: none of them had enqueued the call and
/// nothing of theirs is in flight, so they lack it; or all had, and nobody does. Changes the finding in place; leaves
/// it where the lines do not tell.
void join_reported_progress(const Job& job, const ReportedEvidence& reported, Finding& finding);

/// Adds to a finding about ranks that did not come where their stacks stand, as far as the evidence has them. Ranks
/// that all load data or save are late and lack nothing: such a finding becomes `slow_peer`.
void tell_stacks(const ReportedEvidence& reported, Finding& finding);

}  // namespace lockstep
