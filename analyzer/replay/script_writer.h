// Appends actors, gates and items to a Script. Belongs to the compiler of scripts.
#pragma once

#include <cassert>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "match/match.h"
#include "model/job.h"
#include "replay/rendezvous.h"
#include "replay/script.h"

namespace lockstep {

/// A part with the operation whose it is, as index in the program.
struct OperationPart {
  std::uint32_t operation = 0;
  Part part{};
};

class ScriptWriter {
 public:
  /// After the gates of rendezvous.
  ScriptWriter(const Job& job, const MatchResult& match, Script& script) : job_(job), match_(match), script_(script) {
    for (std::size_t i = 0; i < match.probes.size(); ++i) {
      const GateIndex gate = match.probes[i].gate;
      if (gate != kNoGate)
        probes_of_[static_cast<std::uint32_t>(gate)].push_back(static_cast<std::uint32_t>(match.gate_count + i));
    }
  }

  Script& script() { return script_; }
  std::vector<ScriptItem>& items(std::uint32_t actor) { return script_.actors[actor].items; }

  std::uint32_t add_actor(ProgramIndex program) {
    script_.actors.push_back({.program = program});
    return static_cast<std::uint32_t>(script_.actors.size() - 1);
  }
  std::uint32_t add_gate() {
    script_.missing.push_back(1);
    assert(script_.missing.size() < ScriptItem::kWait);
    return static_cast<std::uint32_t>(script_.missing.size() - 1);
  }

  void arrive(std::uint32_t actor, std::uint32_t gate, std::uint32_t operation) {
    if (!probes_of_.empty()) [[unlikely]]
      arrive_at_probes(actor, gate, operation);
    items(actor).push_back({gate | ScriptItem::kArrive, operation});
  }
  void wait(std::uint32_t actor, std::uint32_t gate, std::uint32_t operation) {
    items(actor).push_back({gate | ScriptItem::kWait, operation});
  }
  void arrive_at(std::uint32_t actor, const OperationPart& p) {
    if (p.part.arrives()) arrive(actor, p.part.gate(), p.operation);
  }

  /// All parts start together; the actor goes on when all have completed.
  void meet(std::uint32_t actor, std::span<const OperationPart> parts) {
    for (const OperationPart& p : parts) arrive_at(actor, p);
    if (parts.size() == 1 && parts[0].part.arrives() && parts[0].part.waits()) {
      items(actor).back().gate_and_flags |= ScriptItem::kWait;
      return;
    }
    for (const OperationPart& p : parts) {
      if (p.part.waits()) wait(actor, p.part.gate(), p.operation);
    }
  }

 private:
  void arrive_at_probes(std::uint32_t actor, std::uint32_t gate, std::uint32_t operation) {
    const auto probes = probes_of_.find(gate);
    if (probes == probes_of_.end() || gate >= match_.gate_count) return;
    if (!is_send(job_.program(script_.actors[actor].program).operations[operation].kind)) return;
    for (const std::uint32_t probe : probes->second) items(actor).push_back({probe | ScriptItem::kArrive, operation});
  }

  const Job& job_;
  const MatchResult& match_;
  Script& script_;
  std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> probes_of_;  // message gate to gates of its probes
};

}  // namespace lockstep
