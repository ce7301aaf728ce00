// What logs say of a rank whose record is missing or cut, joined with the calls of the others.
#pragma once

#include "diagnose/finding.h"
#include "model/job.h"
#include "model/reported.h"

namespace lockstep {

/// `finding`: ranks wait in a call for others of which there is no whole record. Where the status lines of a log say for each of
/// those how far it had come on that communicator, they decide: none of them had enqueued the call and nothing of theirs is in
/// flight, so they lack it; or all had, and nobody does. Changes the finding in place; leaves it where the lines do not tell.
void join_reported_progress(const Job& job, const ReportedEvidence& reported, Finding& finding);

}  // namespace lockstep
