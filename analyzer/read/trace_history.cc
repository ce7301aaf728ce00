// See the header.
#include "read/trace_history.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <limits>
#include <map>
#include <set>
#include <thread>
#include <tuple>

#include "base/rank_ranges.h"
#include "read/trace_bytes.h"
#include "read/trace_calls.h"

namespace lockstep {
namespace {

constexpr std::uint32_t kNowhere = std::numeric_limits<std::uint32_t>::max();

/// A communicator some of whose calls are lost, as its members see it.
struct LostCalls {
  std::uint32_t first = 0;  ///< the first position that all records hold
  bool comparable = true;   ///< fingerprints mean something on all members
  std::vector<MemberStates> members{};
  std::set<std::int32_t> ranks_that_lost{};
};

/// Adds the fingerprints before and after the first position that all hold, as far as this ring has them.
void add_retained_states(const HistoryInput& input, const std::map<std::uint32_t, LostCalls*>& by_comm) {
  const TraceBytes bytes(input.tables->contents);
  for (const RingBlock& block : input.ring->blocks) {
    visit_block(bytes, block, [&](const trace::CallRecord& call, const CallExtensions&, bool) {
      if (!is_collective(static_cast<OpKind>(call.kind)) || call.seq == trace::kNoPosition) return;
      const auto at = by_comm.find(call.comm);
      if (at == by_comm.end()) return;
      LostCalls& lost = *at->second;
      if (call.seq == lost.first || call.seq + 1 == lost.first) {
        lost.members.back().states.push_back({call.detail, std::uint64_t{call.seq} + 1});
      }
    });
  }
}

using LostByComm = std::map<CommIndex, LostCalls>;

LostByComm find_lost(std::span<const HistoryInput> inputs) {
  LostByComm lost;
  for (const HistoryInput& input : inputs) {
    for (const EarlierCalls& earlier : input.read->program.earlier) {
      LostCalls& entry = lost[earlier.comm];
      entry.first = std::max(entry.first, earlier.calls);
      entry.ranks_that_lost.insert(input.read->program.rank);
    }
  }
  return lost;
}

void collect_states(const HistoryInput& input, LostByComm& lost_by_comm) {
  std::map<std::uint32_t, LostCalls*> by_comm;
  for (std::uint32_t id = 0; id < input.names->comms.size(); ++id) {
    const TraceCommView& view = input.names->comms[id];
    const auto at = view.index == kNoComm ? lost_by_comm.end() : lost_by_comm.find(view.index);
    if (at == lost_by_comm.end()) continue;
    const TraceComm& comm = input.tables->comms[id];
    LostCalls& lost = at->second;
    lost.comparable = lost.comparable && view.compare_arguments;
    lost.members.push_back({.rank = input.read->program.rank, .states = comm.checkpoints});
    lost.members.back().states.push_back(comm.now);
    by_comm.emplace(id, &lost);
  }
  if (!by_comm.empty()) add_retained_states(input, by_comm);
}

/// What has to be known of a file's messages to pair those of a wrapped ring.
struct Direction {
  bool lost = false;             ///< the side's ring has lost calls
  std::uint32_t first = kNowhere;
};
struct Pair {
  Direction sends{};
  Direction receives{};
  std::set<std::uint32_t> tags{};
  bool uncounted = false;
};
using PairKey = std::tuple<CommIndex, std::int32_t, std::int32_t>;  // communicator, sender, receiver

PairKey key_of(const Operation& operation, std::int32_t rank) {
  return is_send(operation.kind) ? PairKey(operation.comm, rank, operation.peer) : PairKey(operation.comm, operation.peer, rank);
}

/// Whether a record holds nothing but collectives and what stands between them.
bool holds_only_collectives(const HistoryInput& input) {
  const TraceBytes bytes(input.tables->contents);
  constexpr std::size_t kKindAt = offsetof(trace::CallRecord, kind);
  constexpr std::size_t kCommitAt = offsetof(trace::CallRecord, commit);
  std::array<bool, 256> harmless{};
  for (std::size_t kind = 0; kind < harmless.size(); ++kind) {
    harmless[kind] = is_collective(static_cast<OpKind>(kind)) || kind >= trace::kFirstExtensionKind;
  }
  for (const RingBlock& block : input.ring->blocks) {
    const auto commit = static_cast<std::uint32_t>(block.number);
    if (!bytes.has(block.offset, block.end - block.offset)) return false;
    for (const char* record = bytes.data(block.offset); record < bytes.data(block.offset) + (block.end - block.offset);
         record += trace::kRecordBytes) {
      std::uint32_t found = 0;
      std::memcpy(&found, record + kCommitAt, sizeof found);
      if (found != commit) break;
      const auto flags = static_cast<std::uint8_t>(record[offsetof(trace::CallRecord, flags)]);
      const auto kind = static_cast<std::uint8_t>(record[kKindAt]);
      constexpr std::uint8_t kUndecided = trace::kCallInterComm | trace::kCallPersistent | trace::kCallOpaqueArgs;
      if (!harmless[kind] || (kind < trace::kFirstExtensionKind && (flags & kUndecided) != 0)) return false;
    }
  }
  return true;
}

bool ended_whole(const TraceTables& tables) {
  return tables.header.finalized == 2 && tables.header.aborted == 0 && !tables.cut && !tables.side_damaged &&
         tables.header.records_dropped == 0 && tables.header.state == 0;
}

}  // namespace

void check_lost_calls(std::span<const HistoryInput> inputs, JobBuilder& builder) {
  LostByComm lost_by_comm = find_lost(inputs);
  if (lost_by_comm.empty()) return;
  for (const HistoryInput& input : inputs) collect_states(input, lost_by_comm);
  std::set<std::int32_t> ranks;
  std::size_t proven = 0;
  for (const auto& [index, lost] : lost_by_comm) {
    ranks.insert(lost.ranks_that_lost.begin(), lost.ranks_that_lost.end());
    const Communicator& comm = builder.communicator(index);
    const Agreement agreement = lost.comparable ? compare_states(lost.members) : Agreement{};
    if (lost.comparable && (agreement.proven >= lost.first || comm.members.size() == 1)) {
      ++proven;
    } else if (agreement.differs_by) {
      builder.set_lost_difference(index, {.from = agreement.proven, .to = *agreement.differs_by - 1, .parties = agreement.parties});
    } else {
      builder.warn(fmt::format("calls of {} before #{} are lost, and fingerprints show agreement up to #{} only", excerpt(comm.name),
                               lost.first, agreement.proven));
      builder.set_incomplete();
    }
  }
  const std::vector<std::int32_t> wrapped(ranks.begin(), ranks.end());
  builder.warn(fmt::format("the oldest calls of rank{} {} are no longer in the record; fingerprints prove that they agree on {} of {} "
                           "communicators; order across communicators, and messages, are checked in what is left",
                           wrapped.size() == 1 ? "" : "s", rank_ranges(wrapped, 60), proven, lost_by_comm.size()));
}

void trim_messages(std::span<const HistoryInput> inputs, JobIntake& intake) {
  const bool any_lost =
      std::ranges::any_of(inputs, [](const HistoryInput& input) { return input.read->program.head_missing; });
  if (!any_lost) return;
  std::set<std::int32_t> lost;
  for (const HistoryInput& input : inputs) {
    if (input.read->program.head_missing) lost.insert(input.read->program.rank);
  }
  std::map<PairKey, Pair> pairs;
  const auto for_each_message = [&](const auto& visit) {
    for (const HistoryInput& input : inputs) {
      Program& program = input.read->program;
      for (const MessagePosition& message : input.read->messages) {
        Operation& operation = program.operations[message.operation];
        if (operation.comm == kNoComm || operation.peer < 0) continue;
        const PairKey key = key_of(operation, program.rank);
        if (lost.contains(std::get<1>(key)) || lost.contains(std::get<2>(key))) visit(key, operation, message.seq);
      }
    }
  };
  for_each_message([&](const PairKey& key, const Operation& operation, std::uint32_t seq) {
    Pair& pair = pairs[key];
    pair.tags.insert(operation.tag);
    pair.uncounted = pair.uncounted || seq == trace::kNoPosition;
    Direction& side = is_send(operation.kind) ? pair.sends : pair.receives;
    side.first = std::min(side.first, seq);
  });
  for (auto& [key, pair] : pairs) {
    // A side whose record is whole begins with its first message, even if it has none.
    if (!lost.contains(std::get<1>(key))) pair.sends.first = 0;
    if (!lost.contains(std::get<2>(key))) pair.receives.first = 0;
  }
  const std::uint32_t left_out = intake.shared_extra("message that the other side's record may have lost", {});
  const std::uint32_t undecided = intake.shared_extra({}, "message that the other side's record may have lost");
  for_each_message([&](const PairKey& key, Operation& operation, std::uint32_t seq) {
    const Pair& pair = pairs.at(key);
    const bool in_order = !pair.uncounted && pair.tags.size() == 1;
    if (in_order && seq >= std::max(pair.sends.first, pair.receives.first)) return;
    const bool complete = operation.state == OpState::kCompleted;
    operation.kind = complete ? OpKind::kCompute : OpKind::kOpaque;
    operation.extra = complete ? left_out : undecided;
    operation.comm = kNoComm;
  });
}

bool agrees_by_fingerprints(std::span<const HistoryInput> inputs) {
  struct Seen {
    trace::Checkpoint now{};
    std::size_t members = 0;
    std::size_t expected = 0;
  };
  std::map<CommIndex, Seen> seen;
  for (const HistoryInput& input : inputs) {
    if (!ended_whole(*input.tables)) return false;
    for (std::size_t id = 0; id < input.names->comms.size(); ++id) {
      const TraceComm& comm = input.tables->comms[id];
      if (!comm.known()) continue;
      const TraceCommView& view = input.names->comms[id];
      if (view.index == kNoComm || !comm.has_state || comm.flags != 0) return false;
      Seen& entry = seen[view.index];
      if (entry.members++ == 0) entry.now = comm.now;
      entry.expected = view.members.size();
      if (comm.now.calls != entry.now.calls || comm.now.fingerprint != entry.now.fingerprint) return false;
    }
  }
  if (std::ranges::any_of(seen, [](const auto& entry) { return entry.second.members != entry.second.expected; })) return false;

  std::atomic<bool> plain = true;
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t i = next++; i < inputs.size() && plain; i = next++) {
      if (!holds_only_collectives(inputs[i])) plain = false;
    }
  };
  std::vector<std::jthread> helpers;
  const std::size_t threads = std::min<std::size_t>({std::thread::hardware_concurrency(), 8, inputs.size()});
  for (std::size_t i = 1; i < threads; ++i) helpers.emplace_back(work);
  work();
  helpers.clear();
  return plain;
}

}  // namespace lockstep
