// Launches and runs units, as many at once on a device as its settings allow.
#include "nccl/unit.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <map>
#include <set>

#include "nccl/config.h"
#include "nccl/steps.h"

namespace lockstep::standin {
namespace {

using namespace nccl;

/// The units of one device of this process, by ticket: the order of issue.
struct Device {
  std::set<std::uint64_t> issued{};     ///< not done
  std::set<std::uint64_t> unstarted{};  ///< of those
};

struct Residency {
  std::mutex mutex{};
  std::condition_variable changed{};
  std::map<int, Device> devices{};
  std::uint64_t tickets = 0;
};

Residency& residency() {
  static auto* only = new Residency;
  return *only;
}

std::uint64_t take_ticket(int device) {
  const std::lock_guard lock(residency().mutex);
  const std::uint64_t ticket = ++residency().tickets;
  residency().devices[device].issued.insert(ticket);
  residency().devices[device].unstarted.insert(ticket);
  return ticket;
}

/// Where not all may run at once they start in the order of issue: what a unit depends on was issued before it, so each gets its
/// turn, and whether a program ends does not depend on which worker is faster.
bool may_start(int device, std::uint64_t ticket) {
  const Device& units = residency().devices[device];
  if (config().launch_order_implicit && *units.issued.begin() != ticket) return false;
  const std::size_t running = units.issued.size() - units.unstarted.size();
  return config().resident == 0 || (*units.unstarted.begin() == ticket && running < static_cast<std::size_t>(config().resident));
}

void begin_residency(const ncclComm& comm, std::uint64_t ticket) {
  struct Question {
    const ncclComm* comm;
    std::uint64_t ticket;
  } question{&comm, ticket};
  std::unique_lock lock(residency().mutex);
  if (!may_start(comm.device, ticket)) {
    Wait wait;
    wait.host = false;
    wait.argument = &question;
    wait.ready = [](void* argument) {
      const auto& asked = *static_cast<Question*>(argument);
      const std::lock_guard held(residency().mutex);
      return asked.comm->aborted.load() || may_start(asked.comm->device, asked.ticket);
    };
    wait.describe = [](void* argument, char* text, std::size_t size) {
      const auto& asked = *static_cast<Question*>(argument);
      const std::string said = "rank " + std::to_string(asked.comm->rank) + " waits for other collectives of device " +
                               std::to_string(asked.comm->device);
      text[said.copy(text, size - 1)] = '\0';
    };
    lock.unlock();
    cuda().wait_begin(&wait);
    lock.lock();
    while (!may_start(comm.device, ticket) && !comm.aborted.load())
      residency().changed.wait_for(lock, std::chrono::milliseconds(200));
    lock.unlock();
    cuda().wait_end(&wait);
    lock.lock();
  }
  residency().devices[comm.device].unstarted.erase(ticket);
  lock.unlock();
  residency().changed.notify_all();
}

void end_residency(const ncclComm& comm, std::uint64_t ticket) {
  {
    const std::lock_guard lock(residency().mutex);
    residency().devices[comm.device].issued.erase(ticket);
  }
  residency().changed.notify_all();
}

/// Moves all calls on until they are done: collectives one after another, messages beside them; behind them where NCCL does so.
void run_calls(ncclComm& comm, const std::vector<Call>& calls) {
  std::vector<std::unique_ptr<Steps>> messages;
  std::deque<std::unique_ptr<Steps>> signals;  // in their order
  std::vector<const Call*> collectives;
  for (const Call& call : calls) {
    if (call.is_signal()) signals.push_back(signal_steps(call));
    else if (call.is_message()) messages.push_back(message_steps(call));
    else collectives.push_back(&call);
  }
  const bool messages_last = config().groups == GroupMode::kNccl226;
  std::unique_ptr<Steps> collective;
  std::size_t next = 0;
  const auto step = [&] {
    bool any = false;
    if (collective == nullptr && next < collectives.size()) collective = collective_steps(*collectives[next++]);
    if (collective != nullptr) {
      const Progress progress = collective->advance();
      any = progress != Progress::kNone;
      if (progress == Progress::kDone) collective.reset();
    }
    while (!signals.empty()) {
      const Progress progress = signals.front()->advance();
      any = any || progress != Progress::kNone;
      if (progress != Progress::kDone) break;
      signals.pop_front();
    }
    if (messages_last && (collective != nullptr || next < collectives.size())) return any;
    for (auto& message : messages) {
      const Progress progress = message->advance();
      any = any || progress != Progress::kNone;
      if (progress == Progress::kDone) message.reset();
    }
    std::erase(messages, nullptr);
    return any;
  };
  const auto describe = [&] {
    if (collective != nullptr) return collective->describe();
    if (!signals.empty()) return signals.front()->describe();
    return messages.empty() ? std::string() : messages.front()->describe();
  };
  const Segment& segment = *comm.segment;
  while (!comm.aborted.load()) {
    segment.lock();
    bool moved = false;
    while (step()) moved = true;
    const bool finished = collective == nullptr && next == collectives.size() && messages.empty() && signals.empty();
    const std::uint32_t generation = segment.header().generation.load() + (moved ? 1 : 0);
    segment.unlock();
    if (moved) segment.changed();
    if (finished) break;
    wait_until(
        segment, comm.aborted, false, [&] { return segment.header().generation.load() != generation; }, describe);
  }
}

}  // namespace

ncclResult_t launch_unit(std::vector<Call> calls) {
  ncclComm* comm = calls.front().comm;
  std::vector<CUstream_st*> streams;
  for (const Call& call : calls)
    if (std::ranges::find(streams, call.stream) == streams.end()) streams.push_back(call.stream);
  const bool captured = cuda().capture_id(streams.front()) != 0;
  std::vector<Position> after{comm->last_unit};  // one communicator's units run in the order of issue
  for (CUstream_st* stream : streams) {
    if (cuda().stream(stream) == nullptr) return fail(ncclUnhandledCudaError, "no such stream", comm);
    after.push_back(cuda().tail(stream));
  }
  struct Unit {
    ncclComm* comm;
    std::vector<Call> calls;
    std::uint64_t ticket;
    bool captured;
  };
  auto* unit = new Unit{comm, std::move(calls), captured ? 0 : take_ticket(comm->device), captured};
  if (!captured) ++comm->outstanding;
  const Work work{[](void* argument) {
                    auto& run = *static_cast<Unit*>(argument);
                    const std::uint64_t ticket = run.captured ? take_ticket(run.comm->device) : run.ticket;
                    begin_residency(*run.comm, ticket);
                    run_calls(*run.comm, run.calls);
                    end_residency(*run.comm, ticket);
                    if (!run.captured) --run.comm->outstanding;
                  },
                  [](void* argument) { delete static_cast<Unit*>(argument); }, unit};
  const Position at = cuda().enqueue(streams.front(), work, after.data(), after.size());
  if (!captured) comm->last_unit = at;
  for (std::size_t i = 1; i < streams.size(); ++i) cuda().enqueue(streams[i], {}, &at, 1);
  return ncclSuccess;
}

}  // namespace lockstep::standin
