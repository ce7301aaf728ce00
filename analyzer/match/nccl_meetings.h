// NCCL keeps three kinds of collective apart on one communicator. Launches run on the device in the order of their issue;
// making and ending communicators are meetings of hosts, ordered among themselves only; a collective of no elements is not
// enqueued and takes part in no order. Where all members mix them alike, one numbering serves all three.
#pragma once

#include "match/match.h"
#include "match/sequences.h"
#include "model/job.h"

namespace lockstep {

enum class NcclOrder : std::uint8_t { kLaunches, kMeetings, kNone };
NcclOrder nccl_order(const Operation& operation);

/// Where members mix them differently: sets `apart`, and `blocking` by the positions of each kind. O(calls)
void pair_apart(const Job& job, const CallSequences& sequences, CommunicatorMatch& communicator);

}  // namespace lockstep
