// See the header.
#include "replay/rendezvous.h"

#include <algorithm>

#include "match/nccl_meetings.h"
#include "replay/host_waits.h"

namespace lockstep {

bool is_buffered_send(Library library, BlockingModel model, OpKind kind) {
  if (library == Library::kNccl) return kind == OpKind::kSend && model == BlockingModel::kEager;
  if (library != Library::kMpi) return false;
  switch (kind) {
    case OpKind::kSend:
    case OpKind::kIsend:
      return model == BlockingModel::kEager;
    case OpKind::kBsend:
    case OpKind::kIbsend:
    case OpKind::kRsend:
    case OpKind::kIrsend:
      return true;
    default:
      return false;
  }
}

Rendezvous::Rendezvous(const Job& job, const MatchResult& match, const ReplayOptions& options, const CallRules& rules,
                       Script& script)
    : job_(job), match_(match), options_(options), rules_(rules), script_(script) {
  if (options.model == BlockingModel::kCoupled && rules.library() != Library::kMpi) {
    coupling_ = couple_batches(job, match, options.trust_completion);
  }
  for (std::size_t kind = 0; kind < buffered_.size(); ++kind) {
    buffered_[kind] = is_buffered_send(rules.library(), options.model, static_cast<OpKind>(kind));
  }
  script_.missing.assign(match_.gate_count, 2);  // messages: both sides
  for (const CommunicatorMatch& communicator : match_.communicators) {
    const auto first = script_.missing.begin() + static_cast<std::ptrdiff_t>(to_size(communicator.first_gate));
    std::fill_n(first, communicator.matched_positions(), communicator.participants);
    // Nobody arrives for the extra one: this position cannot complete.
    for (const std::uint32_t seq : communicator.blocking) ++first[seq - communicator.first_position];
  }
  script_.missing.insert(script_.missing.end(), match_.probes.size(), 1);
  if (coupling_) {
    first_component_gate_ = static_cast<std::uint32_t>(script_.missing.size());
    script_.missing.insert(script_.missing.end(), coupling_->launches.begin(), coupling_->launches.end());
  }
  script_.rendezvous_count = static_cast<std::uint32_t>(script_.missing.size());
  find_held_gates();
}

/// Collectives that a rank is known to have stood in to the end: leaving early did not happen there.
void Rendezvous::find_held_gates() {
  if (rules_.library() != Library::kMpi && !rules_.mixed()) return;
  for (const Program& program : job_.programs()) {
    for (auto at = program.operations.rbegin(); at != program.operations.rend() && (at->flags & kOpHeld) != 0; ++at) {
      if (!is_placed_collective(*at) || !rules_.is_mpi(at->comm)) continue;
      const GateIndex gate = match_.communicators[to_size(at->comm)].gate_of(at->seq);
      if (gate != kNoGate) held_gates_.push_back(static_cast<std::uint32_t>(gate));
    }
  }
  std::ranges::sort(held_gates_);
}

std::span<const Part> Rendezvous::parts_of(ProgramIndex program) {
  const auto operations = job_.program(program).placed_operations();
  program_ = program;
  message_ordinal_ = 0;
  apart_.clear();
  known_complete_.clear();
  if (match_.traits[to_size(program)].host_waits && options_.trust_completion)
    known_complete_ = completed_by_host_waits(operations);
  parts_.resize(operations.size());
  for (std::uint32_t i = 0; i < operations.size(); ++i) parts_[i] = part_of(operations[i], i);
  return parts_;
}

Part Rendezvous::part_of(const Operation& operation, std::uint32_t i) {
  if (!takes_effect(operation)) return {};
  const bool known_complete = options_.trust_completion && (operation.state == OpState::kCompleted ||
                                                            (!known_complete_.empty() && known_complete_[i]));
  if (is_point_to_point(operation.kind)) return part_of_message(operation, known_complete);
  if (!is_collective(operation.kind) || operation.comm == kNoComm) return {};
  if (!options_.empty_calls_meet && is_empty_collective(operation) && rules_.is_nccl(operation.comm)) return {};
  const CommunicatorMatch& communicator = match_.communicators[to_size(operation.comm)];
  if (!communicator.outsiders.empty() &&
      std::ranges::find(communicator.outsiders, program_) != communicator.outsiders.end())
    return {};
  const GateIndex gate =
      communicator.apart ? next_gate_apart(communicator, operation) : communicator.gate_of(operation.seq);
  if (gate == kNoGate) return {};
  const Part part(static_cast<std::uint32_t>(gate), true, !known_complete);
  if (rules_.is_mpi(operation.comm) && mpi_model() == BlockingModel::kEager)
    return relaxed(operation, communicator, part);
  return part;
}

Part Rendezvous::part_of_message(const Operation& operation, bool known_complete) {
  const std::size_t ordinal = message_ordinal_++;
  const GateIndex gate = match_.message_gates[to_size(program_)][ordinal];
  if (gate == kNoGate) return {};
  bool buffered = buffered_[static_cast<std::size_t>(operation.kind)];
  if (rules_.mixed()) {
    const Library library = rules_.library_of(operation.comm);
    buffered = is_buffered_send(library, library == Library::kMpi ? mpi_model() : options_.model, operation.kind);
  }
  const bool held = (operation.flags & kOpHeld) != 0;
  const std::uint32_t place = coupling_ ? first_component_gate_ + coupling_->component[to_size(program_)][ordinal]
                                        : static_cast<std::uint32_t>(gate);
  return Part(place, true, !known_complete && (held || !buffered));
}

GateIndex Rendezvous::next_gate_apart(const CommunicatorMatch& communicator, const Operation& operation) {
  const NcclOrder order = nccl_order(operation);
  CommunicatorMatch::Apart& made = apart_[operation.comm];
  const std::uint32_t place =
      order == NcclOrder::kLaunches ? made.launches++ : communicator.apart->launches + made.meetings++;
  return GateIndex{static_cast<std::uint32_t>(to_size(communicator.first_gate)) + place};
}

/// MPI 3.1, 5.1: a member may leave a rooted collective as soon as its own part is done.
Part Rendezvous::relaxed(const Operation& operation, const CommunicatorMatch& communicator, Part part) {
  if (!has_root(operation.kind) || std::ranges::binary_search(communicator.blocking, operation.seq)) return part;
  if (std::ranges::binary_search(held_gates_, part.gate())) return part;
  const bool is_root = operation.peer == job_.program(program_).rank;
  const bool root_sends =
      operation.kind == OpKind::kBroadcast || operation.kind == OpKind::kScatter || operation.kind == OpKind::kScatterV;
  if (!root_sends) return Part(part.gate(), part.arrives(), part.waits() && is_root);
  std::uint32_t& missing = script_.missing[part.gate()];
  missing = std::min<std::uint32_t>(missing, 1);
  return Part(part.gate(), is_root, part.waits() && !is_root);
}

}  // namespace lockstep
