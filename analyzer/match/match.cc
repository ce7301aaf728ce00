// One pass over all programs: counts and fingerprints per (rank, communicator), and messages into their channels.
// Only communicators whose members differ are looked at position by position.
#include "match/match.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <set>
#include <unordered_map>

#include "base/huge_heap.h"
#include "match/nccl_groups.h"
#include "match/nccl_meetings.h"
#include "match/sequences.h"
#include "match/vector_counts.h"

namespace lockstep {
namespace {

/// Signals of NCCL wait for nobody, and a wait for them that is known to have ended has had all it asked for.
bool is_settled_signal(const Operation& operation) {
  if (operation.kind == OpKind::kSignal || operation.kind == OpKind::kPutSignal) return operation.peer >= 0;
  return operation.kind == OpKind::kWaitSignal && operation.state == OpState::kCompleted;
}

/// Answers "is this rank a member" for the communicators of a job; large ones are sorted once.
class Membership {
 public:
  explicit Membership(const Job& job) : job_(job), sorted_(job.communicators().size()) {}

  bool contains(CommIndex comm, std::int32_t rank) {
    const auto& members = job_.communicator(comm).members;
    if (members.size() <= 16) return std::ranges::find(members, rank) != members.end();
    auto& sorted = sorted_[to_size(comm)];
    if (sorted.empty()) {
      sorted = members;
      std::ranges::sort(sorted);
    }
    return std::ranges::binary_search(sorted, rank);
  }

 private:
  const Job& job_;
  std::vector<std::vector<std::int32_t>> sorted_;
};

struct ChannelKey {
  CommIndex comm;
  std::int32_t sender, receiver;
  std::uint32_t tag;
  friend bool operator==(const ChannelKey&, const ChannelKey&) = default;
};
struct ChannelKeyHash {
  std::size_t operator()(const ChannelKey& key) const {
    std::uint64_t hash = to_size(key.comm) * 0x9e3779b97f4a7c15ULL;
    hash = (hash ^ static_cast<std::uint32_t>(key.sender)) * 0xd6e8feb86659fd93ULL;
    hash = (hash ^ static_cast<std::uint32_t>(key.receiver)) * 0xd6e8feb86659fd93ULL;
    return (hash ^ key.tag) ^ (hash >> 29);
  }
};

class Matcher {
 public:
  explicit Matcher(const Job& job)
      : job_(job), membership_(job), count_(job.communicators().size()), fingerprint_(job.communicators().size()),
        partition_(job.communicators().size()), has_vectors_(job.communicators().size()),
        nccl_(job.library() == Library::kNccl), mixed_(job.mixes_libraries()) {
    result_.communicators.resize(job.communicators().size());
    result_.message_gates.resize(job.programs().size());
    result_.traits.resize(job.programs().size());
    message_places_.resize(job.programs().size());
  }

  MatchResult run() {
    set_first_positions();
    for (std::uint32_t p = 0; p < job_.programs().size(); ++p) {
      if (p > 16) extend_heap_in_huge_pages();
      read_program(ProgramIndex{p});
    }
    // Members that left a record but made no call on the communicator are members all the same.
    for (std::uint32_t c = 0; c < job_.communicators().size(); ++c) add_silent_members(CommIndex{c});
    compare_communicators();
    number_gates();
    compare_channels();
    return std::move(result_);
  }

 private:
  /// Where a message operation went: channel and its number there.
  struct MessagePlace {
    std::uint32_t channel = kNone;
    std::uint32_t seq = 0;
    static constexpr std::uint32_t kNone = 0xffffffff;
  };

  void set_first_positions() {
    for (const Program& program : job_.programs()) {
      for (const EarlierCalls& earlier : program.earlier) {
        std::uint32_t& first = result_.communicators[to_size(earlier.comm)].first_position;
        first = std::max(first, earlier.calls);
        result_.begins_late = result_.begins_late || earlier.calls != 0;
      }
    }
  }

  void read_program(ProgramIndex index) {
    const Program& program = job_.program(index);
    touched_.clear();
    ProgramTraits traits;
    for (const EarlierCalls& earlier : program.earlier) {
      if (earlier.calls == 0) continue;
      touched_.push_back(earlier.comm);
      count_[to_size(earlier.comm)] = earlier.calls;
      fingerprint_[to_size(earlier.comm)] = 0;
      partition_[to_size(earlier.comm)] = {};
    }
    const auto operations = program.placed_operations();
    for (std::uint32_t i = 0; i < operations.size(); ++i) {
      const Operation& operation = operations[i];
      add_traits(operation, i, traits);
      // Most calls are plain collectives: one look tells that no rule but the common ones applies.
      const bool is_rare = (operation.flags | operation.launch | operation.extra) != 0;
      if (is_rare) [[unlikely]] note_if_noteworthy(operation, index, i);
      if (is_collective(operation.kind)) {
        if (operation.comm == kNoComm || (is_rare && !takes_effect(operation))) continue;
        std::uint32_t& count = count_[to_size(operation.comm)];
        std::uint64_t& fingerprint = fingerprint_[to_size(operation.comm)];
        if (count == 0) {
          touched_.push_back(operation.comm);
          fingerprint = 0;
          partition_[to_size(operation.comm)] = {};
        }
        const std::uint32_t position = count++;
        if (result_.begins_late && position < result_.communicators[to_size(operation.comm)].first_position) continue;
        fingerprint = (fingerprint ^ signature(job_, operation)) * 0x9e3779b97f4a7c15ULL;
        fingerprint ^= fingerprint >> 31;
        if (is_rare) [[unlikely]] read_rare_collective(operation);
        if (has_pairwise_counts(operation.kind)) [[unlikely]] {
          has_vectors_[to_size(operation.comm)] = has_vectors_[to_size(operation.comm)] || operation.extra != 0 || is_mpi(operation.comm);
        }
      } else if (is_point_to_point(operation.kind)) {
        if (takes_effect(operation)) read_message(index, program, i);
      } else if (operation.kind == OpKind::kProbe) {
        read_probe(index, program, i);
      } else if (op_class(operation.kind) == OpClass::kOpaque && !is_settled_signal(operation)) {
        ++result_.opaque_calls;
      }
    }
    for (const CommIndex comm : touched_) {
      CommunicatorMatch& communicator = result_.communicators[to_size(comm)];
      if (membership_.contains(comm, program.rank)) {
        communicator.members.push_back(
            {index, count_[to_size(comm)], fingerprint_[to_size(comm)], partition_[to_size(comm)].hash});
      } else {
        communicator.outsiders.push_back(index);
        traits.outsider = true;
      }
      count_[to_size(comm)] = 0;
    }
    result_.traits[to_size(index)] = traits;
  }

  void note_if_noteworthy(const Operation& operation, ProgramIndex program, std::uint32_t i) {
    if ((operation.flags & (kOpFailed | kOpThreadUnsafe)) == 0 && operation.kind != OpKind::kInit) return;
    if (result_.noteworthy.size() < MatchResult::kMostNoteworthy) result_.noteworthy.push_back({program, i});
  }

  bool is_nccl(CommIndex comm) const { return mixed_ ? job_.library_of(comm) == Library::kNccl : nccl_; }

  bool is_mpi(CommIndex comm) const { return job_.library_of(comm) == Library::kMpi; }

  void read_rare_collective(const Operation& operation) {
    if (operation.launch != 0 && is_nccl(operation.comm)) add_to_partition(operation);
  }

  /// Positions are hashed that are launched together with the one before.
  void add_to_partition(const Operation& operation) {
    Partition& partition = partition_[to_size(operation.comm)];
    if (operation.launch == partition.launch) {
      partition.hash = (partition.hash ^ (operation.seq + 1)) * 0xd6e8feb86659fd93ULL;
      partition.hash ^= partition.hash >> 32;
    }
    partition.launch = operation.launch;
  }

  static void add_traits(const Operation& operation, std::uint32_t i, ProgramTraits& traits) {
    // Most calls are plain collectives: nothing of the rest applies to them.
    traits.rooted |= has_root(operation.kind);
    traits.completed |= operation.state == OpState::kCompleted;
    traits.zero_counts |= operation.count == Count::of(0);
    const OpClass what = op_class(operation.kind);
    if (what == OpClass::kCollective && operation.launch == 0 && operation.flags == 0) {
      traits.synchronous = true;
      traits.launches = true;
      traits.meets_between |= traits.meets_after;
      return;
    }
    if (what == OpClass::kCreation || what == OpClass::kTeardown) traits.meets_after |= traits.launches;
    if (what == OpClass::kCollective || what == OpClass::kPointToPoint) {
      traits.launches = true;
      traits.meets_between |= traits.meets_after;
    }
    if (what == OpClass::kTeardown || what == OpClass::kLocal) traits.first_end = std::min(traits.first_end, i);
    if (what == OpClass::kCompletion) add_wait_traits(operation, traits);
    traits.batches |= operation.launch != 0;
    traits.batched_messages |= operation.launch != 0 && what == OpClass::kPointToPoint;
    traits.nonblocking |= operation.nonblocking() || is_immediate(operation.kind);
    const bool calls = is_collective(operation.kind) || what == OpClass::kPointToPoint;
    traits.synchronous |= calls && operation.launch == 0 && !operation.nonblocking() && !is_immediate(operation.kind);
    traits.captured |= !takes_effect(operation);
  }

  static bool has_wildcard(const Operation& operation) {
    return operation.comm == kNoComm || operation.peer < 0 || operation.tag == kAnyTag;
  }

  /// Of a message between the program's rank and the operation's peer.
  ChannelKey channel_key(const Program& program, const Operation& operation, bool sends) const {
    return {.comm = operation.comm,
            .sender = sends ? program.rank : operation.peer,
            .receiver = sends ? operation.peer : program.rank,
            .tag = is_nccl(operation.comm) ? kNoTag : operation.tag};
  }

  std::uint32_t channel_of(const ChannelKey& key) {
    const auto [at, added] =
        channel_index_.try_emplace(key, static_cast<std::uint32_t>(result_.channels.size()));
    if (added) {
      channel_hashes_.emplace_back(0, 0);
      result_.channels.push_back(
          {.comm = key.comm, .sender = key.sender, .receiver = key.receiver, .tag = key.tag});
    }
    return at->second;
  }

  static void add_wait_traits(const Operation& wait, ProgramTraits& traits) {
    traits.waits = true;
    if (is_host_wait(wait.kind)) {
      traits.host_waits = true;
      return;
    }
    if (wait.handle != StringIndex{}) return;
    traits.waits_by_stream |= wait.stream != StringIndex{};
    traits.waits_by_peer |= wait.stream == StringIndex{} && wait.peer >= 0;
    traits.waits_for_all |= wait.stream == StringIndex{} && wait.peer < 0;
  }

  void read_message(ProgramIndex index, const Program& program, std::uint32_t i) {
    const Operation& operation = program.operations[i];
    auto& places = message_places_[to_size(index)];
    if (has_wildcard(operation)) {
      ++result_.undecided_messages;
      if (is_receive(operation.kind) && operation.comm != kNoComm) takes_any_.emplace(operation.comm, program.rank);
      places.emplace_back();
      return;
    }
    const bool sends = is_send(operation.kind);
    const std::uint32_t channel = remembered_channel_of(channel_key(program, operation, sends));
    auto& side = sends ? result_.channels[channel].sends : result_.channels[channel].receives;
    places.push_back({channel, static_cast<std::uint32_t>(side.size())});
    side.push_back(i);
    // What both sides must agree on; equal hashes save looking at the calls of both ranks again.
    const std::uint64_t what = operation.count.bits() * 0x9e3779b97f4a7c15ULL ^
                               (static_cast<std::uint64_t>(operation.datatype) << 32 | to_size(operation.payload));
    auto& [sent, received] = channel_hashes_[channel];
    std::uint64_t& hash = sends ? sent : received;
    hash = (hash ^ what) * 0xd6e8feb86659fd93ULL;
    hash ^= hash >> 32;
  }

  /// channel_of through a small cache: a rank talks to few others, again and again.
  std::uint32_t remembered_channel_of(const ChannelKey& key) {
    Remembered& slot = remembered_[(ChannelKeyHash{}(key) >> 7) % remembered_.size()];
    if (!(slot.key == key)) slot = {key, channel_of(key)};
    return slot.channel;
  }

  void read_probe(ProgramIndex index, const Program& program, std::uint32_t i) {
    const Operation& operation = program.operations[i];
    if (has_wildcard(operation)) {
      ++result_.undecided_messages;
      return;
    }
    const ChannelKey key = channel_key(program, operation, false);
    const auto channel = channel_index_.find(key);
    const std::size_t taken = channel == channel_index_.end() ? 0 : result_.channels[channel->second].receives.size();
    result_.probes.push_back({.program = index, .operation = i, .sender = operation.peer});
    probe_places_.emplace_back(key, static_cast<std::uint32_t>(taken));
  }

  void add_silent_members(CommIndex comm) {
    CommunicatorMatch& communicator = result_.communicators[to_size(comm)];
    const auto& members = job_.communicator(comm).members;
    communicator.participants = static_cast<std::uint32_t>(members.size());
    if (communicator.members.empty()) return;  // nobody called: nothing to match
    if (communicator.members.size() < members.size()) {
      std::vector<ProgramIndex> callers;
      for (const MemberCalls& member : communicator.members) callers.push_back(member.program);
      for (const std::int32_t rank : members) {
        const ProgramIndex program = job_.program_of_rank(rank);
        if (program != kNoProgram && !std::ranges::binary_search(callers, program)) {
          communicator.members.push_back({.program = program});
        }
      }
      std::ranges::sort(communicator.members, {}, &MemberCalls::program);
    }
    const MemberCalls& first = communicator.members.front();
    for (const MemberCalls& member : communicator.members) {
      communicator.positions = std::max(communicator.positions, member.count);
      communicator.agreed = communicator.agreed && member.count == first.count &&
                            member.fingerprint == first.fingerprint;
    }
  }

  void number_gates() {
    std::uint64_t next = 0;
    for (CommunicatorMatch& communicator : result_.communicators) {
      communicator.first_gate = GateIndex{static_cast<std::uint32_t>(next)};
      next += communicator.matched_positions();
    }
    for (ChannelMatch& channel : result_.channels) {
      channel.first_gate = GateIndex{static_cast<std::uint32_t>(next)};
      next += std::max(channel.sends.size(), channel.receives.size());
    }
    assert(next < to_size(kNoGate));
    result_.gate_count = static_cast<std::uint32_t>(next);
    for (ChannelMatch& channel : result_.channels) {
      channel.undecided = !takes_any_.empty() && takes_any_.contains({channel.comm, channel.receiver});
    }
    for (std::size_t p = 0; p < message_places_.size(); ++p) {
      auto& gates = result_.message_gates[p];
      gates.reserve(message_places_[p].size());
      for (const MessagePlace& place : message_places_[p]) {
        gates.push_back(place.channel == MessagePlace::kNone || result_.channels[place.channel].undecided
                            ? kNoGate
                            : GateIndex{static_cast<std::uint32_t>(
                                  to_size(result_.channels[place.channel].first_gate) + place.seq)});
      }
      message_places_[p] = {};
    }
    for (std::size_t i = 0; i < probe_places_.size(); ++i) {
      const auto& [key, seq] = probe_places_[i];
      const auto at = channel_index_.find(key);
      if (at == channel_index_.end() || seq >= result_.channels[at->second].sends.size()) continue;
      result_.probes[i].gate =
          GateIndex{static_cast<std::uint32_t>(to_size(result_.channels[at->second].first_gate) + seq)};
    }
  }

  void compare_communicators() {
    std::vector<CommIndex> unequal;
    for (std::uint32_t c = 0; c < result_.communicators.size(); ++c) {
      const CommunicatorMatch& communicator = result_.communicators[c];
      if (!communicator.agreed || has_vectors_[c] || !same_partition(communicator)) unequal.push_back(CommIndex{c});
    }
    // A few at a time: a snapshot of a big live job has all its communicators unequal by a call or two.
    constexpr std::size_t kAtOnce = 64;
    for (std::size_t from = 0; from < unequal.size(); from += kAtOnce) {
      const std::span part = std::span(unequal).subspan(from, std::min(kAtOnce, unequal.size() - from));
      for (const CallSequences& sequences : collect_sequences(job_, result_, part)) {
        CommunicatorMatch& communicator = result_.communicators[to_size(sequences.comm)];
        if (!communicator.agreed) find_first_differences(job_, sequences, communicator);
        if (has_vectors_[to_size(sequences.comm)]) compare_vectors(job_, sequences, communicator);
        if (!is_nccl(sequences.comm)) continue;
        if (!communicator.agreed) pair_apart(job_, sequences, communicator);
        result_.pairs_apart = result_.pairs_apart || communicator.apart;
        apply_group_rules(job_, sequences, communicator);
      }
    }
  }

  void compare_channels() {
    for (std::size_t c = 0; c < result_.channels.size(); ++c) {
      ChannelMatch& channel = result_.channels[c];
      const auto& [sent, received] = channel_hashes_[c];
      if (channel.undecided) continue;
      if (sent != received || channel.sends.size() != channel.receives.size()) compare_channel(channel);
    }
  }

  static bool same_partition(const CommunicatorMatch& communicator) {
    return std::ranges::all_of(communicator.members, [&](const MemberCalls& member) {
      return member.partition == communicator.members.front().partition;
    });
  }

  void compare_channel(ChannelMatch& channel) const {
    const std::size_t pairs = std::min(channel.sends.size(), channel.receives.size());
    if (pairs == 0) return;
    const auto& sends = job_.program(job_.program_of_rank(channel.sender)).operations;
    const auto& receives = job_.program(job_.program_of_rank(channel.receiver)).operations;
    for (std::uint32_t seq = 0; seq < pairs; ++seq) {
      if (compare_message(job_, sends[channel.sends[seq]], receives[channel.receives[seq]]) != Difference::kNone) {
        channel.first_difference = seq;
        return;
      }
    }
  }

  const Job& job_;
  Membership membership_;
  MatchResult result_;
  std::vector<std::uint32_t> count_;        // by communicator, of the program being read
  std::vector<std::uint64_t> fingerprint_;
  struct Partition {
    std::uint64_t hash = 0;
    std::uint32_t launch = 0;  // of the collective before
  };
  std::vector<Partition> partition_;  // as count_
  std::vector<bool> has_vectors_;     // by communicator
  const bool nccl_;
  const bool mixed_;
  std::vector<CommIndex> touched_;
  std::unordered_map<ChannelKey, std::uint32_t, ChannelKeyHash> channel_index_;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> channel_hashes_;  // what was sent, what was to be received
  struct Remembered {
    ChannelKey key{kNoComm, -1, -1, 0};
    std::uint32_t channel = 0;
  };
  std::array<Remembered, 64> remembered_{};
  std::set<std::pair<CommIndex, std::int32_t>> takes_any_;  // receivers with a wildcard receive
  std::vector<std::vector<MessagePlace>> message_places_;  // by program, in program order
  // By MatchResult::probes: channel, and how many messages of it were taken before.
  std::vector<std::pair<ChannelKey, std::uint32_t>> probe_places_;
};

}  // namespace

bool MatchResult::agreed() const {
  return std::ranges::all_of(communicators, &CommunicatorMatch::agreed) &&
         std::ranges::all_of(channels, [](const ChannelMatch& channel) {
           return !channel.first_difference && channel.sends.size() == channel.receives.size();
         });
}

MatchResult match(const Job& job) { return Matcher(job).run(); }

GateOwner owner_of(const MatchResult& match, GateIndex gate) {
  // Gates are numbered communicators first, then channels, in order; empty ones own none.
  const auto first_gate = [](const auto& owner) { return to_size(owner.first_gate); };
  const std::size_t number = to_size(gate);
  if (match.channels.empty() || number < to_size(match.channels.front().first_gate)) {
    const auto after = std::ranges::upper_bound(match.communicators, number, {}, first_gate);
    const auto at = after - 1;
    return {.comm = CommIndex{static_cast<std::uint32_t>(at - match.communicators.begin())},
            .seq = static_cast<std::uint32_t>(number - to_size(at->first_gate)) + at->first_position};
  }
  const auto after = std::ranges::upper_bound(match.channels, number, {}, first_gate);
  const auto at = after - 1;
  return {.channel = static_cast<std::size_t>(at - match.channels.begin()),
          .seq = static_cast<std::uint32_t>(number - to_size(at->first_gate))};
}

}  // namespace lockstep
