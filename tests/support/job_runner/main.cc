// job_runner [--over mpi|nccl] [--timeout S] JOB.json: runs a Job for real, one process per rank; one whose groups are of both (`libraries`)
// over both. The ranks inherit the environment, so
// that a recorder that is preloaded into this process records them. Exit: 0 all ranks ended as the Job says, 10 they stood still until the
// timeout, 11 wrong data or a detected mismatch, 3 the Job cannot be run, else an error.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "launcher.h"
#include "made_groups.h"
#include "nccl_api.h"
#include "nccl_rank.h"
#include "rank_end.h"
#include "read/load.h"

namespace lockstep::testing {
namespace {

std::string to_hex(const std::vector<nccl::ncclUniqueId>& ids) {
  std::string text;
  char digits[3];
  for (const nccl::ncclUniqueId& id : ids)
    for (const char byte : id.internal) {
      std::snprintf(digits, sizeof digits, "%02x", static_cast<unsigned>(static_cast<unsigned char>(byte)));
      text += digits;
    }
  return text;
}

std::vector<nccl::ncclUniqueId> from_hex(const std::string& text, std::size_t count) {
  std::vector<nccl::ncclUniqueId> ids(count);
  for (std::size_t i = 0; i < count * sizeof(nccl::ncclUniqueId) && 2 * i + 1 < text.size(); ++i) {
    unsigned byte = 0;
    if (std::sscanf(text.c_str() + 2 * i, "%2x", &byte) != 1) break;
    ids[i / sizeof(nccl::ncclUniqueId)].internal[i % sizeof(nccl::ncclUniqueId)] = static_cast<char>(byte);
  }
  return ids;
}

int run_rank(const Job& job, std::int32_t rank) {
  const char* ids = std::getenv("LOCKSTEP_RUNNER_IDS");
  const int page_file = open(std::getenv("LOCKSTEP_RUNNER_PAGE"), O_RDWR | O_CLOEXEC);
  RankProgress* page = page_file < 0 ? nullptr : map_progress(page_file, count_ranks(job));
  if (page == nullptr || ids == nullptr) return kRunFailed;
  page[rank].pid = getpid();
  page[rank].phase = static_cast<std::uint32_t>(RankPhase::kStarting);
  NcclRankOptions options;
  int devices = 1;
  nccl::cudaGetDeviceCount(&devices);
  options.device = rank % std::max(devices, 1);
  options.operation = &page[rank].operation;
  options.phase = &page[rank].phase;
  const RankOutcome outcome = run_nccl_rank(job, rank, from_hex(ids, job.communicators().size() + count_new_groups(job)), options);
  if (!outcome.error.empty()) {
    std::fprintf(stderr, "rank %d: %s\n", rank, outcome.error.c_str());
    std::exit(outcome.unsupported ? kRunUnreadable : kRunFailed);
  }
  page[rank].wrong_data = outcome.wrong_data ? 1 : 0;
  page[rank].phase = static_cast<std::uint32_t>(RankPhase::kEnded);
  end_as(end_of(job, rank));
}

/// Calls of MPI and of NCCL in one program.
bool is_mixed(const Job& job) {
  bool mpi = false;
  bool others = false;
  for (std::uint32_t i = 0; i < job.communicators().size(); ++i)
    (job.library_of(CommIndex{i}) == Library::kMpi ? mpi : others) = true;
  return mpi && others;
}

int usage() {
  std::fputs("usage: job_runner [--over mpi|nccl] [--mpi openmpi|mpich] [--timeout S] JOB.json\n", stderr);
  return kRunUsage;
}

int run(const std::vector<std::string>& args) {
  LaunchOptions options;
  std::string over;
  std::string mpi = "openmpi";
  for (std::size_t i = 0; i < args.size(); ++i) {
    const bool has_value = i + 1 < args.size();
    if (args[i] == "--over" && has_value) over = args[++i];
    else if (args[i] == "--mpi" && has_value) mpi = args[++i];
    else if (args[i] == "--timeout" && has_value) options.timeout_s = std::atof(args[++i].c_str());
    else if (args[i].starts_with("--") || !options.path.empty()) return usage();
    else options.path = args[i];
  }
  if (options.path.empty() || !(options.timeout_s > 0) || (!over.empty() && over != "mpi" && over != "nccl")) return usage();
  const std::vector<std::string> paths{options.path};
  const Result<Job> job = load_job(paths);
  if (!job) {
    std::fprintf(stderr, "job_runner: %s\n", job.error().message.c_str());
    return kRunUnreadable;
  }
  const char* rank = std::getenv("RANK");
  if (std::getenv("LOCKSTEP_RUNNER_PAGE") != nullptr && rank != nullptr) return run_rank(*job, std::atoi(rank));

  for (const std::string& warning : job->quality().warnings) std::fprintf(stderr, "job_runner: %s\n", warning.c_str());
  const bool mixed = is_mixed(*job);
  options.over_mpi = mixed || (over.empty() ? job->library() == Library::kMpi : over == "mpi");
  char self[4096] = "";
  if (readlink("/proc/self/exe", self, sizeof self - 1) < 0) return kRunFailed;
  options.self = self;
  if (options.over_mpi) {
    const std::string folder = options.self.substr(0, options.self.rfind('/') + 1);
    options.mpi_run = mpi == "mpich" ? LOCKSTEP_MPICH_RUN : LOCKSTEP_OPENMPI_RUN;
    options.mpi_rank = std::string(LOCKSTEP_MPI_BIN) + (mixed ? "/job_runner_mixed." : "/job_runner_mpi.") + mpi;
    if (access(options.mpi_rank.c_str(), X_OK) != 0 || access(options.mpi_run.c_str(), X_OK) != 0) {
      std::fprintf(stderr, "job_runner: no %s in this build\n", mpi.c_str());
      return kRunUnreadable;
    }
  } else {
    std::vector<nccl::ncclUniqueId> ids(job->communicators().size() + count_new_groups(*job));
    for (nccl::ncclUniqueId& id : ids)
      if (nccl::ncclGetUniqueId(&id) != nccl::ncclSuccess) {
        std::fprintf(stderr, "job_runner: ncclGetUniqueId: %s\n", nccl::ncclGetLastError(nullptr));
        return kRunFailed;
      }
    options.ids = to_hex(ids);
  }
  return launch_and_watch(*job, options);
}

}  // namespace
}  // namespace lockstep::testing

int main(int argc, char** argv) { return lockstep::testing::run({argv + 1, argv + argc}); }
