// Forks, runs the ranks, and reports through a pipe.
#include "test/world.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <sstream>
#include <thread>

namespace lockstep::standin::testing {
namespace {

constexpr int kMostCommunicators = 4;
constexpr int kTimeoutMs = 20'000;
constexpr int kTimedOut = 99;

nccl::ncclUniqueId g_ids[kMostCommunicators];
std::mutex g_failures;

std::string read_all(int descriptor) {
  std::string text;
  char part[4096];
  for (ssize_t got = 0; (got = read(descriptor, part, sizeof part)) > 0;) text.append(part, static_cast<std::size_t>(got));
  close(descriptor);
  return text;
}

[[noreturn]] void be_world(int ranks, const std::map<std::string, std::string>& settings,
                           const std::function<void(Rank&)>& body, int report) {
  setenv("LOCKSTEP_REHEARSE_DEVICES", std::to_string(ranks).c_str(), 1);
  for (const auto& [name, value] : settings) setenv(("LOCKSTEP_REHEARSE_" + name).c_str(), value.c_str(), 1);
  for (nccl::ncclUniqueId& id : g_ids) nccl::ncclGetUniqueId(&id);
  const CudaHooks& cuda = *lockstep_standin_cuda_hooks();
  cuda.expect_hosts(ranks);
  static std::string failures;
  static std::vector<int> ended;
  std::vector<std::thread> threads;
  for (int number = 0; number < ranks; ++number)
    threads.emplace_back([&, number] {
      nccl::cudaSetDevice(number);
      Rank rank(number, ranks, failures);
      body(rank);
      {
        const std::lock_guard lock(g_failures);
        ended.push_back(number);
      }
      cuda.host_ended();
    });
  const Settled settled = cuda.settle(kTimeoutMs);
  const std::lock_guard lock(g_failures);
  std::ostringstream text;
  text << (settled == Settled::kStuck ? 1 : 0) << ' ' << ended.size();
  for (const int rank : ended) text << ' ' << rank;
  text << '\n' << failures;
  const std::string all = text.str();
  const bool written = write(report, all.data(), all.size()) == static_cast<ssize_t>(all.size());
  _exit(settled == Settled::kTimedOut || !written ? kTimedOut : 0);
}

}  // namespace

nccl::ncclComm_t Rank::communicator(int index) const {
  nccl::ncclComm_t comm = nullptr;
  expect(nccl::ncclCommInitRank(&comm, ranks, g_ids[index], number) == nccl::ncclSuccess, "ncclCommInitRank");
  return comm;
}

nccl::cudaStream_t Rank::stream() {
  nccl::cudaStream_t made = nullptr;
  nccl::cudaStreamCreateWithFlags(&made, 1);
  return made;
}

void Rank::expect(bool holds, const std::string& what) const {
  if (holds) return;
  const std::lock_guard lock(g_failures);
  failures_ += "rank " + std::to_string(number) + ": " + what + "\n";
}

Outcome run_world(int ranks, const std::map<std::string, std::string>& settings, const std::function<void(Rank&)>& body) {
  int report[2];
  int errors[2];
  if (pipe(report) != 0 || pipe(errors) != 0) return {.exit_code = kTimedOut, .failures = "no pipe"};
  const pid_t child = fork();
  if (child == 0) {
    dup2(errors[1], STDERR_FILENO);
    close(errors[1]);
    close(report[0]);
    be_world(ranks, settings, body, report[1]);
  }
  close(report[1]);
  close(errors[1]);
  Outcome outcome;
  std::istringstream text(read_all(report[0]));
  outcome.stderr_text = read_all(errors[0]);
  int status = 0;
  waitpid(child, &status, 0);
  outcome.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  int stuck = 0;
  std::size_t count = 0;
  text >> stuck >> count;
  outcome.stuck = stuck != 0;
  for (std::size_t i = 0; i < count; ++i) {
    int rank = 0;
    text >> rank;
    outcome.ended.push_back(rank);
  }
  std::sort(outcome.ended.begin(), outcome.ended.end());
  std::getline(text, outcome.failures);
  std::getline(text, outcome.failures, '\0');
  return outcome;
}

}  // namespace lockstep::standin::testing
