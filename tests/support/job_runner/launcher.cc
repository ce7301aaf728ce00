// Forks, watches the page of progress, and ends what stands still.
#include "launcher.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <map>

#include "rank_end.h"

namespace lockstep::testing {
namespace {

using Clock = std::chrono::steady_clock;

struct Child {
  pid_t pid = 0;
  int status = 0;
  bool ended = false;
};

pid_t start(std::vector<std::string> words) {
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const pid_t child = fork();
  if (child != 0) return child;
  setpgid(0, 0);
  execv(argv[0], argv.data());
  std::perror(argv[0]);
  _exit(kRunFailed);
}

std::vector<Child> start_all(int ranks, const LaunchOptions& options) {
  std::vector<Child> children;
  if (options.over_mpi) {
    std::vector<std::string> words{options.mpi_run};
    if (options.mpi_run.find("openmpi") != std::string::npos)
      words.insert(words.end(), {"--allow-run-as-root", "--oversubscribe", "--quiet"});
    words.insert(words.end(), {"-n", std::to_string(ranks), options.mpi_rank, options.path});
    children.push_back({start(std::move(words))});
    return children;
  }
  for (int rank = 0; rank < ranks; ++rank) {
    const std::string number = std::to_string(rank);
    setenv("RANK", number.c_str(), 1);
    setenv("LOCAL_RANK", number.c_str(), 1);
    children.push_back({start({options.self, options.path})});
  }
  return children;
}

std::uint64_t total(const RankProgress* page, int ranks) {
  std::uint64_t sum = 0;
  for (int rank = 0; rank < ranks; ++rank)
    sum += (std::uint64_t{page[rank].phase} << 40) + page[rank].operation;
  return sum;
}

/// False: stood still.
bool watch(std::vector<Child>& children, const RankProgress* page, int ranks, double timeout_s) {
  auto since = Clock::now();
  std::uint64_t seen = 0;
  while (true) {
    bool any = false;
    for (Child& child : children) {
      if (!child.ended && waitpid(child.pid, &child.status, WNOHANG) == child.pid) {
        child.ended = true;
        since = Clock::now();
      }
      any = any || !child.ended;
    }
    if (!any) return true;
    if (const std::uint64_t now = total(page, ranks); now != seen) {
      seen = now;
      since = Clock::now();
    }
    if (std::chrono::duration<double>(Clock::now() - since).count() > timeout_s) return false;
    usleep(5000);
  }
}

void end_all(std::vector<Child>& children, const RankProgress* page, int ranks, bool over_mpi) {
  // The ranks first: a launcher that sees them end cleans up after itself.
  for (int rank = 0; rank < ranks && over_mpi; ++rank)
    if (page[rank].pid > 0 && page[rank].phase != static_cast<std::uint32_t>(RankPhase::kEnded)) kill(page[rank].pid, SIGKILL);
  for (int waited = 0; over_mpi && !children[0].ended && waited < 200; ++waited) {
    children[0].ended = waitpid(children[0].pid, &children[0].status, WNOHANG) == children[0].pid;
    usleep(10'000);
  }
  for (Child& child : children) {
    if (child.ended) continue;
    kill(child.pid, SIGKILL);
    waitpid(child.pid, &child.status, 0);
  }
}

void print_place(const Job& job, int rank, const RankProgress& progress) {
  const ProgramIndex index = job.program_of_rank(rank);
  const std::size_t at = progress.operation;
  if (index == kNoProgram || at >= job.program(index).operations.size()) {
    std::printf("rank %d: %s\n", rank,
                progress.phase == static_cast<std::uint32_t>(RankPhase::kStarting)
                    ? "makes its communicators"
                    : "behind its last line, where it waits for what it issued");
    return;
  }
  const Operation& operation = job.program(index).operations[at];
  std::printf("rank %d: line %u: %s", rank, operation.line, std::string(op_name(operation.kind)).c_str());
  if (operation.comm != kNoComm) std::printf(" %s", job.communicator(operation.comm).name.c_str());
  std::printf("\n");
}

bool ended_as_said(int status, ProgramEnd end) {
  if (end.kind == EndKind::kKilled) return WIFSIGNALED(status) && WTERMSIG(status) == (end.status > 0 ? end.status : SIGKILL);
  return WIFEXITED(status) && WEXITSTATUS(status) == std::max(end.status, 0);
}

}  // namespace

int count_ranks(const Job& job) {
  int ranks = 0;
  for (const Program& program : job.programs()) ranks = std::max(ranks, program.rank + 1);
  for (const Communicator& communicator : job.communicators())
    for (const std::int32_t member : communicator.members) ranks = std::max(ranks, member + 1);
  return ranks;
}

int launch_and_watch(const Job& job, const LaunchOptions& options) {
  const int ranks = count_ranks(job);
  const int descriptor = memfd_create("job_runner", MFD_CLOEXEC);
  if (descriptor < 0 || ftruncate(descriptor, static_cast<off_t>(ranks * static_cast<int>(sizeof(RankProgress)))) != 0)
    return kRunFailed;
  RankProgress* page = map_progress(descriptor, ranks);
  if (page == nullptr) return kRunFailed;
  const std::string path = "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(descriptor);
  setenv("LOCKSTEP_RUNNER_PAGE", path.c_str(), 1);
  setenv("LOCKSTEP_RUNNER_IDS", options.ids.c_str(), 1);
  if (!options.over_mpi) setenv("WORLD_SIZE", std::to_string(ranks).c_str(), 1);
  // The ranks are ended from here; theirs is only for the case that this process is gone.
  setenv("LOCKSTEP_REHEARSE_TIMEOUT", std::to_string(options.timeout_s * 4 + 20).c_str(), 0);
  if (job.implicit_launch_order()) setenv("NCCL_LAUNCH_ORDER_IMPLICIT", "1", 1);
  if (job.library() == Library::kNccl && job.library_version() > 0)
    setenv("LOCKSTEP_REHEARSE_NCCL_VERSION", std::to_string(job.library_version()).c_str(), 0);
  std::fflush(stdout);
  std::vector<Child> children = start_all(ranks, options);
  if (!watch(children, page, ranks, options.timeout_s)) {
    end_all(children, page, ranks, options.over_mpi);
    std::printf("hung: no rank came further for %g s\n", options.timeout_s);
    for (int rank = 0; rank < ranks; ++rank)
      if (page[rank].phase != static_cast<std::uint32_t>(RankPhase::kEnded)) print_place(job, rank, page[rank]);
    return kRunHung;
  }
  int outcome = kRunEnded;
  for (int rank = 0; rank < ranks; ++rank) {
    if (page[rank].wrong_data != 0) {
      std::printf("rank %d: wrong data\n", rank);
      outcome = kRunWrongData;
    }
  }
  for (std::size_t i = 0; i < children.size() && outcome == kRunEnded; ++i) {
    const int status = children[i].status;
    if (options.over_mpi && WIFEXITED(status) && WEXITSTATUS(status) == 0) continue;
    const auto rank = static_cast<std::int32_t>(i);
    if (!options.over_mpi && ended_as_said(status, end_of(job, rank))) continue;
    constexpr int kMismatchDetected = 123;  // the stand-in's mode `detect`
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    if (options.over_mpi) std::printf("the launcher ended with %d\n", code);
    else std::printf("rank %d ended with %d\n", rank, code);
    outcome = code == kMismatchDetected ? kRunWrongData : code == kRunUnreadable ? kRunUnreadable : kRunFailed;
  }
  if (outcome == kRunEnded) std::printf("all %d ranks ended\n", ranks);
  return outcome;
}

}  // namespace lockstep::testing
