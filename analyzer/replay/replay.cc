// The machine: runs actors until none can move. Opening a gate is for ever, so the order of running changes nothing.
#include "replay/replay.h"

#include <algorithm>
#include <utility>

#include "model/gloo.h"
#include "replay/plain_items.h"
#include "replay/script.h"

namespace lockstep {
namespace {

constexpr std::uint32_t kNobody = 0xffffffff;

class Machine {
 public:
  Machine(const Job& job, const Script& script, const PlainItems& plain)
      : job_(job),
        script_(script),
        plain_(plain),
        actors_(script.actors.size()) {
    gates_.reserve(script.missing.size());
    for (const std::uint32_t missing : script.missing) gates_.push_back({missing, kNobody});
  }

  void run() {
    for (std::uint32_t actor = 0; actor < actors_.size(); ++actor) {
      runnable_.push_back(actor);
      while (!runnable_.empty()) {
        const std::uint32_t next = runnable_.back();
        runnable_.pop_back();
        if (script_.actors[next].is_plain) {
          advance_plain(next);
        } else {
          advance(next);
        }
      }
    }
  }

  /// Index of the item that the actor stands at; the number of its items = it came to its end.
  std::uint32_t position(std::size_t actor) const { return actors_[actor].position; }
  bool is_open(std::uint32_t gate) const { return gates_[gate].missing == 0; }

 private:
  struct State {
    std::uint32_t position = 0;
    std::uint32_t ordinal = 0;               // plain actors: point-to-point operations before `position`
    std::uint32_t next_waiter = kNobody;     // an actor waits at one gate at a time
  };

  struct Gate {
    std::uint32_t missing = 0;             // arrivals until it opens
    std::uint32_t first_waiter = kNobody;  // the others by State::next_waiter
  };

  /// Does the item; true where the actor has to stand there.
  bool stands_at(const ScriptItem item, std::uint32_t actor) {
    if (!item.arrives() && !item.waits()) return false;
    Gate& gate = gates_[item.gate()];
    if (item.arrives() && gate.missing > 0 && --gate.missing == 0) open(gate);
    if (!item.waits() || gate.missing == 0) return false;
    actors_[actor].next_waiter = gate.first_waiter;
    gate.first_waiter = actor;
    return true;
  }

  void advance(std::uint32_t actor) {
    const auto& items = script_.actors[actor].items;
    std::uint32_t at = actors_[actor].position;
    while (at < items.size() && !stands_at(items[at], actor)) ++at;
    actors_[actor].position = at;
  }

  void advance_plain(std::uint32_t actor) {
    const std::size_t program = to_size(script_.actors[actor].program);
    const auto operations = job_.programs()[program].placed_operations();
    State& state = actors_[actor];
    std::uint32_t at = state.position;
    std::uint32_t ordinal = state.ordinal;
    for (; at < operations.size(); ++at) {
      if (stands_at(plain_.item(operations[at], program, at, ordinal), actor)) {
        // All other ranks run before this one does again, but one round is not always enough to fetch a call from memory.
        __builtin_prefetch(operations.data() + at + 1);
        __builtin_prefetch(operations.data() + at + 2);
        break;
      }
    }
    state.position = at;
    state.ordinal = ordinal;
  }

  void open(Gate& gate) {
    for (std::uint32_t waiter = gate.first_waiter; waiter != kNobody; waiter = actors_[waiter].next_waiter) {
      ++actors_[waiter].position;  // it has arrived before it waited
      runnable_.push_back(waiter);
    }
    gate.first_waiter = kNobody;
  }

  const Job& job_;
  const Script& script_;
  const PlainItems& plain_;
  std::vector<Gate> gates_;
  std::vector<State> actors_;
  std::vector<std::uint32_t> runnable_;
};

/// Where actors stand, as operations and rendezvous.
class StandstillReader {
 public:
  StandstillReader(const Job& job, const MatchResult& match, const Script& script, const PlainItems& plain,
                   const Machine& machine)
      : job_(job),
        match_(match),
        script_(script),
        plain_(plain),
        machine_(machine),
        stuck_index_(script.rendezvous_count, kNobody) {}

  ReplayResult read() {
    for (std::size_t a = 0; a < script_.actors.size(); ++a) add_blocked(a);
    if (result_.blocked.empty()) return std::move(result_);
    std::ranges::stable_sort(result_.blocked, {}, [](const BlockedOperation& b) {
      return std::pair(b.program, b.operation);
    });
    // The host and a queue may stand at the same call.
    const auto [first, last] = std::ranges::unique(result_.blocked, [](const BlockedOperation& a, const BlockedOperation& b) {
      return a.program == b.program && a.operation == b.operation && a.stuck == b.stuck;
    });
    result_.blocked.erase(first, last);
    for (std::size_t a = 0; a < script_.actors.size(); ++a) add_arrivals(a);
    for (StuckGate& stuck : result_.stuck) finish(stuck);
    for (const Script::HostWait& wait : script_.host_waits) {
      const std::uint32_t at = machine_.position(wait.actor);
      if (wait.first <= at && at < wait.end) {
        result_.waiting_hosts.push_back({script_.actors[wait.actor].program, wait.operation});
      }
    }
    return std::move(result_);
  }

 private:
  /// The items of an actor, written down where it is plain. Valid until the next call.
  const std::vector<ScriptItem>& items_of(const Actor& actor) {
    if (!actor.is_plain) return actor.items;
    written_.clear();
    std::uint32_t ordinal = 0;
    const auto size = static_cast<std::uint32_t>(job_.program(actor.program).placed);
    for (std::uint32_t at = 0; at < size; ++at) written_.push_back(plain_.item(actor.program, at, ordinal));
    return written_;
  }

  std::size_t item_count(const Actor& actor) const {
    return actor.is_plain ? job_.program(actor.program).placed : actor.items.size();
  }

  void add_blocked(std::size_t a) {
    const std::uint32_t from = machine_.position(a);
    if (from == item_count(script_.actors[a])) return;
    const auto& items = items_of(script_.actors[a]);
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
    const auto& items = items_of(actor);
    for (std::uint32_t at = 0; at < items.size(); ++at) {
      const ScriptItem item = items[at];
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
      if (operation.comm == owner.comm && is_placed_collective(operation) && operation.seq == owner.seq) {
        return {operation.peer};
      }
    }
    return {};
  }

  const Job& job_;
  const MatchResult& match_;
  const Script& script_;
  const PlainItems& plain_;
  const Machine& machine_;
  std::vector<ScriptItem> written_;
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
  const PlainItems plain(job, match, options);
  Machine machine(job, script, plain);
  machine.run();
  return StandstillReader(job, match, script, plain, machine).read();
}

std::vector<BlockingModel> distinct_models(const Job& job, const MatchResult& match) {
  if (job.library() == Library::kMpi && !job.mixes_libraries()) return {BlockingModel::kEager, BlockingModel::kBlocking};
  if (job.library() == kGlooLibrary && !job.mixes_libraries()) return {BlockingModel::kLazy};
  const bool queues = std::ranges::any_of(match.traits, [](const ProgramTraits& t) { return t.nonblocking || t.batches; });
  const bool batches = std::ranges::any_of(match.traits, &ProgramTraits::batched_messages);
  std::vector<BlockingModel> models{BlockingModel::kLazy};
  if (job.library() == Library::kNccl) {
    const bool messages = std::ranges::any_of(match.message_gates, [](const auto& gates) { return !gates.empty(); });
    if (messages) models.push_back(BlockingModel::kEager);
    if (queues || job.mixes_libraries()) models.push_back(BlockingModel::kBlocking);
  } else if (queues) models.insert(models.end(), {BlockingModel::kEager, BlockingModel::kBlocking});
  if (batches) models.push_back(BlockingModel::kCoupled);
  return models;
}

}  // namespace lockstep
