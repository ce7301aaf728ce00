// Tarjan's strongly connected components over ranks and rendezvous: rank -> rendezvous it stands at -> ranks that are
// not there. Rendezvous as nodes keep the arcs linear in the ranks.
#include "diagnose/wait_graph.h"

#include <algorithm>
#include <map>

namespace lockstep {
namespace {

using Node = std::uint32_t;
using Arcs = std::vector<std::vector<Node>>;

/// component[node], numbered so that every arc leads to an equal or lower component.
std::vector<std::uint32_t> strongly_connected(const Arcs& arcs) {
  constexpr std::uint32_t kUnseen = 0xffffffff;
  std::vector<std::uint32_t> component(arcs.size(), kUnseen);
  std::vector<std::uint32_t> order(arcs.size(), kUnseen);
  std::vector<std::uint32_t> low(arcs.size(), 0);
  std::vector<Node> open;
  struct Visit {
    Node node;
    std::size_t next_arc;
  };
  std::vector<Visit> path;
  std::uint32_t next_order = 0;
  std::uint32_t next_component = 0;
  for (Node root = 0; root < arcs.size(); ++root) {
    if (order[root] != kUnseen) continue;
    path.push_back({root, 0});
    while (!path.empty()) {
      auto& [node, next_arc] = path.back();
      if (next_arc == 0) {
        order[node] = low[node] = next_order++;
        open.push_back(node);
      }
      if (next_arc < arcs[node].size()) {
        const Node target = arcs[node][next_arc++];
        if (order[target] == kUnseen) {
          path.push_back({target, 0});
        } else if (component[target] == kUnseen) {
          low[node] = std::min(low[node], order[target]);
        }
        continue;
      }
      if (low[node] == order[node]) {
        for (Node member = open.back();; member = open.back()) {
          open.pop_back();
          component[member] = next_component;
          if (member == node) break;
        }
        ++next_component;
      }
      const Node done = node;
      path.pop_back();
      if (!path.empty()) low[path.back().node] = std::min(low[path.back().node], low[done]);
    }
  }
  return component;
}

class CauseFinder {
 public:
  CauseFinder(const Job& job, const ReplayResult& replay)
      : job_(job), replay_(replay), programs_(job.programs().size()) {}

  std::vector<Cause> run() {
    build();
    component_ = strongly_connected(arcs_);
    const std::uint32_t components = component_.empty() ? 0 : *std::ranges::max_element(component_) + 1;
    std::vector<bool> is_bottom(components, true);
    for (Node node = 0; node < arcs_.size(); ++node) {
      for (const Node target : arcs_[node]) {
        if (component_[target] != component_[node] && !hides_nothing(target)) is_bottom[component_[node]] = false;
      }
    }
    std::map<std::uint32_t, std::vector<Node>> bottoms;
    for (Node node = 0; node < arcs_.size(); ++node) {
      const bool stands = is_gate(node) || (is_program(node) && blocked_[node]);
      if (is_bottom[component_[node]] && (stands || !reverse_[node].empty())) bottoms[component_[node]].push_back(node);
    }
    std::vector<Cause> causes;
    for (const auto& [id, nodes] : bottoms) add_cause(nodes, causes);
    std::ranges::stable_sort(causes, {}, [](const Cause& cause) { return std::pair(cause.kind, cause.ranks.front()); });
    return causes;
  }

 private:
  // Nodes: programs, then rendezvous, then ranks without a record.
  Node gate_node(std::size_t stuck) const { return static_cast<Node>(programs_ + stuck); }
  bool is_program(Node node) const { return node < programs_; }
  bool is_gate(Node node) const { return node >= programs_ && node < programs_ + replay_.stuck.size(); }
  std::int32_t rank_of(Node node) const {
    return is_program(node) ? job_.programs()[node].rank : absent_ranks_[node - programs_ - replay_.stuck.size()];
  }

  void build() {
    arcs_.resize(programs_ + replay_.stuck.size());
    blocked_.assign(programs_, false);
    for (const BlockedOperation& blocked : replay_.blocked) {
      blocked_[to_size(blocked.program)] = true;
      arcs_[to_size(blocked.program)].push_back(gate_node(blocked.stuck));
    }
    for (std::size_t s = 0; s < replay_.stuck.size(); ++s) {
      const StuckGate& stuck = replay_.stuck[s];
      for (const ProgramIndex program : stuck.later) arcs_[gate_node(s)].push_back(static_cast<Node>(program));
      for (const std::int32_t rank : stuck.never) {
        const Node target = node_of_rank(rank);  // may add a node
        arcs_[gate_node(s)].push_back(target);
      }
    }
    reverse_.resize(arcs_.size());
    for (Node node = 0; node < arcs_.size(); ++node) {
      for (const Node target : arcs_[node]) reverse_[target].push_back(node);
    }
  }

  Node node_of_rank(std::int32_t rank) {
    const ProgramIndex program = job_.program_of_rank(rank);
    if (program != kNoProgram) return static_cast<Node>(program);
    const auto [at, added] = absent_.try_emplace(rank, static_cast<Node>(arcs_.size()));
    if (added) {
      arcs_.emplace_back();
      absent_ranks_.push_back(rank);
    }
    return at->second;
  }

  /// A rank that cannot be known to be the cause must not hide one that can.
  bool hides_nothing(Node node) const {
    if (is_gate(node)) {
      return !arcs_[node].empty() && std::ranges::all_of(arcs_[node], [&](Node t) { return hides_nothing(t); });
    }
    if (!is_program(node)) return job_.end_of_rank(rank_of(node)).kind == EndKind::kUnknown;
    return !blocked_[node] && job_.programs()[node].tail_missing;
  }

  CauseKind kind_of_end(std::int32_t rank) const {
    const ProgramIndex program = job_.program_of_rank(rank);
    const bool cut = program != kNoProgram && job_.program(program).tail_missing;
    switch (job_.end_of_rank(rank).kind) {
      case EndKind::kKilled:
        return CauseKind::kKilled;
      case EndKind::kExited:
        return cut ? CauseKind::kCutRecord : CauseKind::kEnded;
      case EndKind::kUnknown:
      case EndKind::kRunning:
        break;
    }
    if (program == kNoProgram) return CauseKind::kNoRecord;
    return cut ? CauseKind::kCutRecord : CauseKind::kStandsElsewhere;
  }

  void add_cause(const std::vector<Node>& nodes, std::vector<Cause>& causes) const {
    Cause cause;
    for (const Node node : nodes) {
      if (is_gate(node)) {
        cause.stuck.push_back(node - programs_);
      } else {
        cause.ranks.push_back(rank_of(node));
      }
    }
    if (nodes.size() == 1 && is_gate(nodes.front())) {
      const StuckGate& stuck = replay_.stuck[cause.stuck.front()];
      if (!arcs_[nodes.front()].empty()) return;  // waits for ranks that hide nothing: those are the causes
      cause.kind = CauseKind::kUnequalCalls;
      for (const ProgramIndex program : stuck.arrived) cause.ranks.push_back(job_.program(program).rank);
    } else if (nodes.size() == 1) {
      if (is_program(nodes.front()) && blocked_[nodes.front()]) return;  // waits for such ranks only
      cause.kind = kind_of_end(cause.ranks.front());
      for (const Node gate : reverse_[nodes.front()]) cause.stuck.push_back(gate - programs_);
    }
    std::ranges::sort(cause.ranks);
    std::ranges::sort(cause.stuck);
    // Ranks that are missed at the same places, for the same reason, are one cause.
    const auto alike = std::ranges::find_if(causes, [&](const Cause& other) {
      return other.kind == cause.kind && cause.kind != CauseKind::kCycle && other.stuck == cause.stuck;
    });
    if (alike != causes.end()) {
      alike->ranks.insert(alike->ranks.end(), cause.ranks.begin(), cause.ranks.end());
      std::ranges::sort(alike->ranks);
      return;
    }
    cause.victims = ranks_above(nodes);
    causes.push_back(std::move(cause));
  }

  std::vector<std::int32_t> ranks_above(std::vector<Node> from) const {
    std::vector<bool> seen(arcs_.size(), false);
    for (const Node node : from) seen[node] = true;
    std::vector<std::int32_t> ranks;
    while (!from.empty()) {
      const Node node = from.back();
      from.pop_back();
      for (const Node above : reverse_[node]) {
        if (seen[above]) continue;
        seen[above] = true;
        from.push_back(above);
        if (is_program(above)) ranks.push_back(rank_of(above));
      }
    }
    std::ranges::sort(ranks);
    return ranks;
  }

  const Job& job_;
  const ReplayResult& replay_;
  const std::size_t programs_;
  Arcs arcs_;
  Arcs reverse_;
  std::vector<std::uint32_t> component_;
  std::vector<bool> blocked_;  // by program
  std::map<std::int32_t, Node> absent_;
  std::vector<std::int32_t> absent_ranks_;
};

}  // namespace

std::vector<Cause> find_causes(const Job& job, const ReplayResult& replay) {
  return CauseFinder(job, replay).run();
}

}  // namespace lockstep
