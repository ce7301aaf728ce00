// The machine: runs actors until none can move. Opening a gate is for ever, so the order of running changes nothing.
#include "replay/replay.h"

#include <algorithm>
#include <utility>

#include "replay/script.h"

namespace lockstep {
namespace {

constexpr std::uint32_t kNobody = 0xffffffff;

class Machine {
 public:
  explicit Machine(const Script& script)
      : script_(script),
        missing_(script.missing),
        first_waiter_(script.missing.size(), kNobody),
        next_waiter_(script.actors.size(), kNobody),
        position_(script.actors.size(), 0) {}

  void run() {
    for (std::uint32_t actor = 0; actor < script_.actors.size(); ++actor) {
      runnable_.push_back(actor);
      while (!runnable_.empty()) {
        const std::uint32_t next = runnable_.back();
        runnable_.pop_back();
        advance(next);
      }
    }
  }

  /// Index of the item that the actor stands at; items.size() = it came to its end.
  std::uint32_t position(std::size_t actor) const { return position_[actor]; }
  bool is_open(std::uint32_t gate) const { return missing_[gate] == 0; }

 private:
  void advance(std::uint32_t actor) {
    const auto& items = script_.actors[actor].items;
    std::uint32_t at = position_[actor];
    for (; at < items.size(); ++at) {
      const ScriptItem item = items[at];
      const std::uint32_t gate = item.gate();
      if (item.arrives() && missing_[gate] > 0 && --missing_[gate] == 0) open(gate);
      if (item.waits() && missing_[gate] > 0) {
        next_waiter_[actor] = first_waiter_[gate];
        first_waiter_[gate] = actor;
        break;
      }
    }
    position_[actor] = at;
  }

  void open(std::uint32_t gate) {
    for (std::uint32_t waiter = first_waiter_[gate]; waiter != kNobody; waiter = next_waiter_[waiter]) {
      ++position_[waiter];  // it has arrived before it waited
      runnable_.push_back(waiter);
    }
    first_waiter_[gate] = kNobody;
  }

  const Script& script_;
  std::vector<std::uint32_t> missing_;
  std::vector<std::uint32_t> first_waiter_;  // by gate
  std::vector<std::uint32_t> next_waiter_;   // by actor: an actor waits at one gate
  std::vector<std::uint32_t> position_;
  std::vector<std::uint32_t> runnable_;
};

/// Where actors stand, as operations and rendezvous.
class StandstillReader {
 public:
  StandstillReader(const Job& job, const MatchResult& match, const Script& script, const Machine& machine)
      : job_(job), match_(match), script_(script), machine_(machine), stuck_index_(script.rendezvous_count, kNobody) {}

  ReplayResult read() {
    for (std::size_t a = 0; a < script_.actors.size(); ++a) add_blocked(a);
    if (result_.blocked.empty()) return std::move(result_);
    std::ranges::stable_sort(result_.blocked, {}, [](const BlockedOperation& b) {
      return std::pair(b.program, b.operation);
    });
    for (std::size_t a = 0; a < script_.actors.size(); ++a) add_arrivals(a);
    for (StuckGate& stuck : result_.stuck) finish(stuck);
    return std::move(result_);
  }

 private:
  void add_blocked(std::size_t a) {
    const auto& items = script_.actors[a].items;
    const std::uint32_t from = machine_.position(a);
    for (std::uint32_t at = from; at < items.size(); ++at) {
      // The waits that follow without a new arrival belong to the same batch, or to the same wait call.
      if (!items[at].waits() || (at > from && items[at].arrives())) break;
      // An internal gate is held by another actor of the same rank, which is listed itself.
      const std::uint32_t gate = items[at].gate();
      if (gate >= script_.rendezvous_count || machine_.is_open(gate)) continue;
      if (stuck_index_[gate] == kNobody) {
        stuck_index_[gate] = static_cast<std::uint32_t>(result_.stuck.size());
        const bool of_match = gate < match_.gate_count;
        result_.stuck.push_back({.gate = of_match ? GateIndex{gate} : kNoGate});
        const std::size_t probe = gate - match_.gate_count;
        if (!of_match && probe < match_.probes.size() && match_.probes[probe].gate == kNoGate) {
          result_.stuck.back().never.push_back(match_.probes[probe].sender);
        }
      }
      result_.blocked.push_back(
          {.program = script_.actors[a].program, .operation = items[at].operation, .stuck = stuck_index_[gate]});
    }
  }

  void add_arrivals(std::size_t a) {
    const Actor& actor = script_.actors[a];
    const std::uint32_t position = machine_.position(a);
    for (std::uint32_t at = 0; at < actor.items.size(); ++at) {
      const ScriptItem item = actor.items[at];
      if (!item.arrives() || item.gate() >= script_.rendezvous_count) continue;
      const std::uint32_t index = stuck_index_[item.gate()];
      if (index == kNobody) continue;
      // Standing at an item means having arrived at it.
      StuckGate& stuck = result_.stuck[index];
      (at <= position ? stuck.arrived : stuck.later).push_back(actor.program);
    }
  }

  void finish(StuckGate& stuck) const {
    const auto tidy = [](std::vector<ProgramIndex>& programs) {
      std::ranges::sort(programs);
      programs.erase(std::unique(programs.begin(), programs.end()), programs.end());
    };
    tidy(stuck.arrived);
    tidy(stuck.later);
    if (stuck.gate == kNoGate) return;
    for (const std::int32_t rank : participants(stuck.gate)) {
      const ProgramIndex program = job_.program_of_rank(rank);
      if (program == kNoProgram || (!std::ranges::binary_search(stuck.arrived, program) &&
                                    !std::ranges::binary_search(stuck.later, program))) {
        stuck.never.push_back(rank);
      }
    }
    std::ranges::sort(stuck.never);
  }

  std::vector<std::int32_t> participants(GateIndex gate) const {
    const GateOwner owner = owner_of(match_, gate);
    if (owner.comm == kNoComm) {
      const ChannelMatch& channel = match_.channels[owner.channel];
      return {channel.sender, channel.receiver};
    }
    const std::uint32_t first = script_.missing[to_size(gate)];
    const auto& members = job_.communicator(owner.comm).members;
    // A broadcast whose members wait for the root alone (MPI, eager).
    if (first == 1 && members.size() > 1) return root_of(owner);
    return members;
  }

  std::vector<std::int32_t> root_of(const GateOwner& owner) const {
    for (const BlockedOperation& blocked : result_.blocked) {
      const Operation& operation = job_.program(blocked.program).operations[blocked.operation];
      if (operation.comm == owner.comm && is_collective(operation.kind) && operation.seq == owner.seq) {
        return {operation.peer};
      }
    }
    return {};
  }

  const Job& job_;
  const MatchResult& match_;
  const Script& script_;
  const Machine& machine_;
  std::vector<std::uint32_t> stuck_index_;  // by rendezvous gate
  ReplayResult result_;
};

}  // namespace

std::string_view blocking_model_name(BlockingModel model) {
  switch (model) {
    case BlockingModel::kLazy:
      return "lazy";
    case BlockingModel::kEager:
      return "eager";
    case BlockingModel::kBlocking:
      return "blocking";
    case BlockingModel::kCoupled:
      return "coupled";
  }
  return "";
}

ReplayResult replay(const Job& job, const MatchResult& match, const ReplayOptions& options) {
  const Script script = compile_script(job, match, options);
  Machine machine(script);
  machine.run();
  return StandstillReader(job, match, script, machine).read();
}

std::vector<BlockingModel> distinct_models(const Job& job) {
  if (job.library() == Library::kMpi) return {BlockingModel::kEager, BlockingModel::kBlocking};
  bool queues = false;
  bool batches = false;
  for (const Program& program : job.programs()) {
    for (const Operation& operation : program.operations) {
      queues = queues || operation.nonblocking() || is_immediate(operation.kind) || operation.launch != 0;
      batches = batches || (operation.launch != 0 && is_point_to_point(operation.kind));
    }
    if (queues && batches) break;
  }
  std::vector<BlockingModel> models{BlockingModel::kLazy};
  if (queues) models.insert(models.end(), {BlockingModel::kEager, BlockingModel::kBlocking});
  if (batches) models.push_back(BlockingModel::kCoupled);
  return models;
}

}  // namespace lockstep
