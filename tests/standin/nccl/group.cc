// Keeps the calls of a group, puts them in the order in which they are launched, and runs what blocks.
#include "nccl/group.h"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <csignal>
#include <thread>
#include <tuple>
#include <utility>

#include "nccl/config.h"
#include "nccl/reduce.h"
#include "nccl/unit.h"

namespace lockstep::standin {
namespace {

using namespace nccl;

struct Job {
  ncclComm* comm = nullptr;
  std::function<ncclResult_t()> run{};
};

struct Group {
  int depth = 0;
  ncclResult_t error = ncclSuccess;
  std::vector<Call> calls{};
  std::vector<Job> jobs{};
};

Group& group() {
  thread_local Group* mine = nullptr;  // trivial for the loader; one leaks with each thread
  if (mine == nullptr) mine = new Group;
  return *mine;
}

/// Four bins for each power of two, the largest first: what NCCL cannot tell apart by size it leaves in the order of issue.
int size_bin(const Call& call) {
  const std::uint64_t bytes = call.count * datatype_bytes(call.datatype);
  const auto power = static_cast<int>(std::bit_width(bytes));
  const auto quarter = power > 2 ? static_cast<int>(bytes >> (power - 3) & 3U) : 0;
  return -(power * 4 + quarter);
}

/// The launch order of a group: by communicator as first named, or as NCCL since 2.26.2 does it.
std::vector<std::vector<Call>> units_of(std::vector<Call> calls) {
  std::vector<std::vector<Call>> units;
  for (Call& call : calls) {
    auto unit = std::ranges::find_if(units, [&](const auto& other) { return other.front().comm == call.comm; });
    if (unit == units.end()) unit = units.insert(units.end(), std::vector<Call>{});
    unit->push_back(std::move(call));
  }
  if (config().groups == GroupMode::kStrict) return units;
  for (auto& unit : units)
    std::ranges::stable_sort(unit, [](const Call& a, const Call& b) {
      const auto key = [](const Call& call) {
        return std::tuple(call.is_message(), call.is_message() ? 0 : size_bin(call), call.is_message() ? OpKind::kUnknown : call.kind,
                          call.is_message() ? 0 : call.redop, call.is_message() ? 0 : call.datatype);
      };
      return key(a) < key(b);
    });
  std::ranges::stable_sort(units, {}, [](const auto& unit) { return std::pair(unit.front().comm->hash, unit.front().comm->rank); });
  return units;
}

/// A message to oneself must have its other half in the same group.
ncclResult_t check_self_messages(const std::vector<Call>& unit) {
  int open = 0;
  for (const Call& call : unit)
    if (call.is_message() && call.peer == call.comm->rank) open += call.kind == OpKind::kSend ? 1 : -1;
  return open == 0 ? ncclSuccess
                   : fail(ncclInvalidUsage, "a send to oneself and its receive must be in the same group", unit.front().comm);
}

ncclResult_t launch(std::vector<Call> calls) {
  if (calls.empty()) return ncclSuccess;
  const bool captured = cuda().capture_id(calls.front().stream) != 0;
  for (const Call& call : calls)
    if ((cuda().capture_id(call.stream) != 0) != captured)
      return fail(ncclInvalidUsage, "of one group, either none or all streams may be captured", call.comm);
  auto units = units_of(std::move(calls));
  for (const auto& unit : units)
    if (const ncclResult_t result = check_self_messages(unit); result != ncclSuccess) return result;
  for (auto& unit : units)
    if (const ncclResult_t result = launch_unit(std::move(unit)); result != ncclSuccess) return result;
  return ncclSuccess;
}

/// Runs a job with the device of its communicator and notes what became of it.
ncclResult_t run_job(const Job& job) {
  const ncclResult_t result = job.run();
  if (job.comm != nullptr) job.comm->state = result;
  return result;
}

ncclResult_t run_jobs(const std::vector<Job>& jobs) {
  if (jobs.empty()) return ncclSuccess;
  const bool beside = std::ranges::any_of(jobs, [](const Job& job) { return job.comm != nullptr && !job.comm->blocking; });
  if (beside) {
    for (const Job& job : jobs)
      if (job.comm != nullptr) job.comm->state = ncclInProgress;
    for (const Job& job : jobs) std::thread([job] {
        t_is_helper = true;
        run_job(job);
      }).detach();
    return ncclInProgress;
  }
  if (jobs.size() == 1) return run_job(jobs.front());
  std::vector<ncclResult_t> results(jobs.size(), ncclSuccess);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < jobs.size(); ++i) threads.emplace_back([&, i] {
      t_is_helper = true;
      results[i] = run_job(jobs[i]);
    });
  for (std::thread& thread : threads) thread.join();
  const auto failed = std::ranges::find_if(results, [](ncclResult_t result) { return result != ncclSuccess; });
  return failed == results.end() ? ncclSuccess : *failed;
}

/// What the settings want to go wrong with this call. True: it is not issued.
bool is_faulted(Call& call) {
  if (call.is_message() || call.is_signal() || config().faults.empty()) return false;
  const std::uint64_t seq = call.comm->issued_calls++;
  static thread_local std::vector<Call>* held = nullptr;
  if (held == nullptr) held = new std::vector<Call>;
  for (const FaultKnob& fault : config().faults) {
    if (fault.rank != call.comm->rank || fault.communicator != call.comm->index) continue;
    if (fault.kind == FaultKind::kReorder && seq == fault.seq + 1 && !held->empty()) {
      Call later = std::exchange(call, std::move(held->back()));
      held->pop_back();
      if (in_group()) group().calls.push_back(std::move(later));
      else launch({std::move(later)});
      return false;
    }
    if (seq != fault.seq) continue;
    switch (fault.kind) {
      case FaultKind::kSkip:
        return true;
      case FaultKind::kKill:
        kill(getpid(), SIGKILL);
        return true;
      case FaultKind::kDelay:
        std::this_thread::sleep_for(std::chrono::milliseconds(fault.delay_ms));
        return false;
      case FaultKind::kReorder:
        held->push_back(std::move(call));
        return true;
    }
  }
  return false;
}

}  // namespace

void begin_group() { ++group().depth; }
bool in_group() { return group().depth > 0; }

ncclResult_t refuse(ncclResult_t result) {
  Group& own = group();
  if (own.depth > 0 && own.error == ncclSuccess && result != ncclInProgress) own.error = result;
  return result;
}

ncclResult_t end_group(bool launch_calls) {
  Group& own = group();
  if (own.depth == 0) return fail(ncclInvalidUsage, "ncclGroupEnd without ncclGroupStart");
  if (--own.depth > 0) return ncclSuccess;
  const std::vector<Call> calls = std::exchange(own.calls, {});
  const std::vector<Job> jobs = std::exchange(own.jobs, {});
  const ncclResult_t error = std::exchange(own.error, ncclSuccess);
  if (!launch_calls) return error;
  if (error != ncclSuccess) {
    for (const Job& job : jobs)
      if (job.comm != nullptr) job.comm->state = error;
    return error;
  }
  if (const ncclResult_t result = run_jobs(jobs); result != ncclSuccess) return result;
  return launch(calls);
}

ncclResult_t issue_call(Call call) {
  if (is_faulted(call)) return ncclSuccess;
  if (in_group()) {
    group().calls.push_back(std::move(call));
    return ncclSuccess;
  }
  std::vector<Call> calls;
  calls.push_back(std::move(call));
  return launch(std::move(calls));
}

ncclResult_t run_blocking(ncclComm* comm, std::function<ncclResult_t()> job) {
  if (in_group()) {
    group().jobs.push_back({comm, std::move(job)});
    return ncclSuccess;
  }
  return run_jobs({{comm, std::move(job)}});
}

}  // namespace lockstep::standin
