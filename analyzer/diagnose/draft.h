// A finding in the making: what the ordering and merging of findings need to know beside its text.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/ids.h"
#include "diagnose/finding.h"

namespace lockstep {

struct Draft {
  Finding finding{};
  CommIndex comm = kNoComm;
  bool stalls = false;             ///< ranks stand at it in replay
  bool is_cycle = false;           ///< ranks wait for each other: of several findings at one place the one to begin with
  bool is_effect = false;          ///< a cycle that a difference elsewhere may have brought about
  bool holds_nobody = false;       ///< whatever stands still, this is not why
  std::uint32_t first_call = 0;    ///< index of the call in the program of the rank that makes it
  std::uint32_t missing = 0;       ///< collectives that the divergent ranks lack on `comm`
  std::uint32_t extra = 0;         ///< collectives that they make more
  bool at_end = false;             ///< what is missing is the end of the sequence
  std::uint64_t signature = 0;     ///< of the first call that is missing or extra
  /// Messages only.
  struct Message {
    std::int32_t sender = 0, receiver = 0;
    std::uint32_t tag = kNoTag;
    bool send_left = false;     ///< the send has no partner; else the receive
    bool unmatched = false;     ///< false: a pair that does not fit
  };
  std::optional<Message> message{};
};

/// Joins differences that have one root: a rank that ended early and is missed in many places, calls made on the wrong
/// communicator, a message sent to the wrong peer. What stalls the job first, then by place in the program.
void join_differences(std::vector<Draft>& drafts);

/// Makes a cycle the finding of the difference that brought it about: the verdict is `deadlock`, the class, place and words
/// are those of the difference, which is taken out of `differences`. Only a difference on a communicator of the cycle, by
/// ranks of the cycle, is taken.
void adopt_difference(Draft& cycle, const std::vector<CommIndex>& cycle_communicators,
                      const std::vector<std::int32_t>& cycle_ranks, std::vector<Draft>& differences);

/// All findings, cause first; cycles that are alike become one.
std::vector<Finding> merge_drafts(std::vector<Draft> drafts);

}  // namespace lockstep
