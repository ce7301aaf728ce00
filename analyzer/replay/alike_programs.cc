// See the header.
#include "replay/alike_programs.h"

#include <algorithm>
#include <utility>

namespace lockstep {
namespace {

/// Equal for programs that are alike. Of a few operations at both ends only: it is no proof, but saves most vain
/// comparisons.
std::uint64_t hash_of_ends(std::span<const Operation> operations) {
  constexpr std::size_t kEnd = 16;
  std::uint64_t hash = operations.size();
  const auto add = [&hash](std::span<const Operation> some) {
    for (const Operation& operation : some) {
      const std::uint64_t names = static_cast<std::uint64_t>(operation.handle) << 32 | operation.launch;
      const std::uint64_t rest =
          static_cast<std::uint64_t>(operation.kind) | static_cast<std::uint64_t>(operation.flags) << 8 |
          static_cast<std::uint64_t>(operation.state) << 24 | static_cast<std::uint64_t>(operation.stream) << 32;
      hash = (hash ^ names) * 0x9e3779b97f4a7c15ULL;
      hash = (hash ^ hash >> 32 ^ rest) * 0xd6e8feb86659fd93ULL;
      hash ^= hash >> 29;
    }
  };
  add(operations.first(std::min(kEnd, operations.size())));
  if (operations.size() > kEnd) add(operations.last(std::min(kEnd, operations.size() - kEnd)));
  return hash;
}

/// Condition (1).
bool are_alike(const Operation& a, const Operation& b) {
  return a.kind == b.kind && a.launch == b.launch && a.flags == b.flags && a.state == b.state && a.stream == b.stream &&
         a.handle == b.handle;
}

/// Whose peer is a partner, not a root.
bool names_partner(OpKind kind) { return is_point_to_point(kind) || op_class(kind) == OpClass::kCompletion; }

}  // namespace

bool AlikePrograms::Names::add(std::uint32_t a, std::uint32_t b) {
  const auto has_other = [&](const Pair& pair) { return pair.a == a || pair.b == b; };
  if (pairs_.size() == kMostNames || std::ranges::any_of(pairs_, has_other)) return false;
  pairs_.push_back({a, b});
  return true;
}

/// Conditions (2) and (3).
bool AlikePrograms::names_match(const Operation& a, const Operation& b) {
  const auto comm_a = static_cast<std::uint32_t>(a.comm), comm_b = static_cast<std::uint32_t>(b.comm);
  if (!communicators_.contains(comm_a, comm_b)) {
    if ((a.comm == kNoComm) != (b.comm == kNoComm) || rules_.library_of(a.comm) != rules_.library_of(b.comm))
      return false;
    if (!communicators_.add(comm_a, comm_b)) return false;
  }
  if (!names_partner(b.kind)) return true;
  if (a.peer < 0 || b.peer < 0) return a.peer == b.peer;
  const auto peer_a = static_cast<std::uint32_t>(a.peer), peer_b = static_cast<std::uint32_t>(b.peer);
  return partners_.contains(peer_a, peer_b) || partners_.add(peer_a, peer_b);
}

bool AlikePrograms::is_like(const Compiled& model, std::span<const Operation> operations, std::span<const Part> parts) {
  const auto others = job_.program(model.program).placed_operations();
  if (others.size() != operations.size()) return false;
  communicators_.clear();
  partners_.clear();
  for (std::size_t i = 0; i < operations.size(); ++i) {
    if (!are_alike(others[i], operations[i]) || !model.parts[i].is_like(parts[i])) return false;
    if (!names_match(others[i], operations[i])) return false;
  }
  return true;
}

bool AlikePrograms::copy(ProgramIndex program, std::span<const Part> parts) {
  const auto operations = job_.program(program).placed_operations();
  const auto found = by_ends_.find(hash_of_ends(operations));
  if (found == by_ends_.end()) return false;
  for (const std::uint32_t number : found->second) {
    if (!is_like(compiled_[number], operations, parts)) continue;
    append_copy(compiled_[number], program, parts);
    return true;
  }
  return false;
}

void AlikePrograms::append_copy(const Compiled& model, ProgramIndex program, std::span<const Part> parts) {
  const auto first_actor = static_cast<std::uint32_t>(script_.actors.size());
  const auto first_gate = static_cast<std::uint32_t>(script_.missing.size());
  for (std::uint32_t a = model.first_actor; a < model.end_actor; ++a) {
    Actor actor{.program = program};
    actor.items.reserve(script_.actors[a].items.size());
    for (const ScriptItem item : script_.actors[a].items) {
      const std::uint32_t gate = item.gate() < script_.rendezvous_count ? parts[item.operation].gate()
                                                                        : item.gate() - model.first_gate + first_gate;
      actor.items.push_back({gate | (item.gate_and_flags & ScriptItem::kFlags), item.operation});
    }
    script_.actors.push_back(std::move(actor));
  }
  script_.missing.resize(first_gate + (model.end_gate - model.first_gate), 1);
  for (std::size_t w = model.first_wait; w < model.end_wait; ++w) {
    Script::HostWait wait = script_.host_waits[w];
    wait.actor = wait.actor - model.first_actor + first_actor;
    script_.host_waits.push_back(wait);
  }
}

void AlikePrograms::begin() {
  begun_ = {.first_actor = static_cast<std::uint32_t>(script_.actors.size()),
            .first_gate = static_cast<std::uint32_t>(script_.missing.size()),
            .first_wait = script_.host_waits.size()};
}

void AlikePrograms::remember(ProgramIndex program, std::span<const Part> parts) {
  if (compiled_.size() == kMostRemembered || operations_ + parts.size() > kMostOperations) {
    compiled_.clear();
    by_ends_.clear();
    operations_ = 0;
  }
  auto& tried = by_ends_[hash_of_ends(job_.program(program).placed_operations())];
  if (tried.size() == kMostTried) return;
  begun_.program = program;
  begun_.parts.assign(parts.begin(), parts.end());
  begun_.end_actor = static_cast<std::uint32_t>(script_.actors.size());
  begun_.end_gate = static_cast<std::uint32_t>(script_.missing.size());
  begun_.end_wait = script_.host_waits.size();
  operations_ += parts.size();
  tried.push_back(static_cast<std::uint32_t>(compiled_.size()));
  compiled_.push_back(std::move(begun_));
}

}  // namespace lockstep
