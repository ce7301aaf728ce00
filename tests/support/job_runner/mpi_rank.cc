// One rank of a Job over MPI, started by mpirun for job_runner. Built with NCCL (LOCKSTEP_RUNNER_NCCL) it runs programs that call both,
// as those do that MPI starts: the unique ids go round by MPI_Bcast.
#include <fcntl.h>
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "made_groups.h"
#include "progress.h"
#include "rank_end.h"
#include "read/load.h"
#include "sizes.h"
#ifndef LOCKSTEP_RUNNER_NCCL
#define LOCKSTEP_RUNNER_NCCL 0
#endif
#if LOCKSTEP_RUNNER_NCCL
#include "nccl_api.h"
#include "nccl_rank.h"
#endif

namespace lockstep::testing {
namespace {

MPI_Datatype datatype_of(std::string_view type) {
  if (type == "f32" || type.empty()) return MPI_FLOAT;
  if (type == "f64") return MPI_DOUBLE;
  if (type == "i32") return MPI_INT;
  if (type == "u32") return MPI_UNSIGNED;
  if (type == "i64") return MPI_INT64_T;
  if (type == "u64") return MPI_UINT64_T;
  if (type == "i8") return MPI_INT8_T;
  if (type_bytes(type) == 2) return MPI_INT16_T;
  return MPI_UINT8_T;
}

MPI_Op op_of(std::string_view redop) {
  if (redop == "prod") return MPI_PROD;
  if (redop == "max") return MPI_MAX;
  if (redop == "min") return MPI_MIN;
  return MPI_SUM;
}

int number(std::string_view text, int otherwise) {
  int value = otherwise;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

class MpiRank {
 public:
  MpiRank(const Job& job, std::int32_t rank, RankProgress& progress)
      : job_(job), rank_(rank), progress_(progress), comms_(job.communicators().size(), MPI_COMM_NULL) {}

  void run() {
    make_communicators();
    progress_.phase = static_cast<std::uint32_t>(RankPhase::kRunning);
    const ProgramIndex index = job_.program_of_rank(rank_);
    if (index != kNoProgram) run_program(job_.program(index));
    progress_.phase = static_cast<std::uint32_t>(RankPhase::kFinishing);
    for (auto& [handle, requests] : requests_) wait(requests);
  }

  bool unsupported = false;

#if LOCKSTEP_RUNNER_NCCL
  RankOutcome run_with_nccl() {
    make_communicators();
    std::vector<nccl::ncclUniqueId> ids(comms_.size());
    if (rank_ == 0)
      for (nccl::ncclUniqueId& id : ids) nccl::ncclGetUniqueId(&id);
    MPI_Bcast(ids.data(), static_cast<int>(ids.size() * sizeof(nccl::ncclUniqueId)), MPI_BYTE, 0, MPI_COMM_WORLD);
    NcclRankOptions options{.operation = &progress_.operation, .phase = &progress_.phase};
    int devices = 1;
    nccl::cudaGetDeviceCount(&devices);
    options.device = rank_ % std::max(devices, 1);
    std::vector<MPI_Request> batch;
    options.other_library = [&](const Operation& operation) {
      const bool is_of_mpi = operation.comm == kNoComm ? operation.kind == OpKind::kWait && requests_.contains(std::string(job_.text(operation.handle)))
                                                       : job_.library_of(operation.comm) == Library::kMpi;
      if (is_of_mpi) run_operation(operation, batch);
      wait(batch);
      return is_of_mpi;
    };
    RankOutcome outcome = run_nccl_rank(job_, rank_, ids, options);
    for (auto& [handle, requests] : requests_) wait(requests);
    return outcome;
  }
#endif

 private:
  int member(CommIndex comm, std::int32_t job_rank) const {
    const auto& members = job_.communicator(comm).members;
    const auto found = std::ranges::find(members, job_rank);
    return found == members.end() ? -1 : static_cast<int>(found - members.begin());
  }

  /// In their order, each by its members alone.
  void make_communicators() {
    MPI_Group world = MPI_GROUP_NULL;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    for (std::size_t i = 0; i < comms_.size(); ++i) {
      const CommIndex index{static_cast<std::uint32_t>(i)};
      const auto& members = job_.communicator(index).members;
      if (member(index, rank_) < 0 || is_made_by_a_line(job_, index)) continue;
      if (LOCKSTEP_RUNNER_NCCL && job_.library_of(index) != Library::kMpi) continue;
      MPI_Group group = MPI_GROUP_NULL;
      MPI_Group_incl(world, static_cast<int>(members.size()), members.data(), &group);
      MPI_Comm_create_group(MPI_COMM_WORLD, group, static_cast<int>(i % 1000), &comms_[i]);
      MPI_Group_free(&group);
    }
  }

  void wait(std::vector<MPI_Request>& requests) {
    MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
    requests.clear();
  }

  void run_program(const Program& program) {
    std::vector<MPI_Request> batch;
    std::uint32_t launch = 0;
    for (std::uint32_t i = 0; i < program.operations.size() && !unsupported; ++i) {
      const Operation& operation = program.operations[i];
      if (operation.launch != launch) wait(batch);  // a batch is complete when its parts are
      launch = operation.launch;
      progress_.operation = i;
      run_operation(operation, batch);
    }
    wait(batch);
    progress_.operation = static_cast<std::uint32_t>(program.operations.size());
  }

  void run_operation(const Operation& operation, std::vector<MPI_Request>& batch) {
    if (is_collective(operation.kind) || is_point_to_point(operation.kind)) {
      if (operation.comm == kNoComm || member(operation.comm, rank_) < 0) return refuse(operation, "this rank is no member");
      const bool later = operation.nonblocking() || operation.launch != 0;
      MPI_Request request = MPI_REQUEST_NULL;
      if (is_point_to_point(operation.kind)) message(operation, later, request);
      else collective(operation, later, request);
      if (request == MPI_REQUEST_NULL) return;
      if (operation.launch != 0 && operation.handle == StringIndex{}) batch.push_back(request);
      else requests_[std::string(job_.text(operation.handle))].push_back(request);
      return;
    }
    switch (operation.kind) {
      case OpKind::kCompute:
        usleep(500);
        break;
      case OpKind::kExit:
        break;
      case OpKind::kWait:
        if (operation.handle == StringIndex{})
          for (auto& [handle, requests] : requests_) wait(requests);
        else
          wait(requests_[std::string(job_.text(operation.handle))]);
        break;
      case OpKind::kProbe: {
        const MPI_Comm comm = operation.comm == kNoComm ? MPI_COMM_WORLD : comms_[to_size(operation.comm)];
        MPI_Probe(source(operation), tag(operation, true), comm, MPI_STATUS_IGNORE);
        break;
      }
      default:
        refuse(operation, "not run over MPI");
    }
  }

  void refuse(const Operation& operation, const char* why) {
    std::fprintf(stderr, "rank %d: line %u: %s: %s\n", rank_, operation.line, std::string(op_name(operation.kind)).c_str(), why);
    unsupported = true;
  }

  int source(const Operation& operation) const {
    if (operation.peer == kAnyPeer) return MPI_ANY_SOURCE;
    return operation.comm == kNoComm ? operation.peer : member(operation.comm, operation.peer);
  }

  static int tag(const Operation& operation, bool receives) {
    if (operation.tag == kAnyTag && receives) return MPI_ANY_TAG;
    return operation.tag == kNoTag || operation.tag == kAnyTag ? 0 : static_cast<int>(operation.tag % 32768);
  }

  char* buffer(std::uint64_t bytes) {
    buffers_.emplace_back(bytes + 8);
    return buffers_.back().data();
  }

  void message(const Operation& operation, bool later, MPI_Request& request) {
    const auto count = static_cast<int>(run_count(operation.count));
    const MPI_Datatype type = datatype_of(job_.datatype(operation.datatype));
    const MPI_Comm comm = comms_[to_size(operation.comm)];
    char* data = buffer(static_cast<std::uint64_t>(count) * 8);
    const int peer = source(operation);
    const int tag_value = tag(operation, is_receive(operation.kind));
    if (is_receive(operation.kind)) {
      if (later) MPI_Irecv(data, count, type, peer, tag_value, comm, &request);
      else MPI_Recv(data, count, type, peer, tag_value, comm, MPI_STATUS_IGNORE);
      return;
    }
    const bool synchronous = operation.kind == OpKind::kSsend || operation.kind == OpKind::kIssend;
    if (synchronous && later) MPI_Issend(data, count, type, peer, tag_value, comm, &request);
    else if (synchronous) MPI_Ssend(data, count, type, peer, tag_value, comm);
    else if (later) MPI_Isend(data, count, type, peer, tag_value, comm, &request);
    else MPI_Send(data, count, type, peer, tag_value, comm);
  }

  void collective(const Operation& operation, bool later, MPI_Request& request) {
    const auto n = static_cast<int>(run_count(operation.count));
    const MPI_Datatype type = datatype_of(job_.datatype(operation.datatype));
    const MPI_Op op = op_of(job_.redop(operation.redop));
    MPI_Comm comm = comms_[to_size(operation.comm)];
    const auto ranks = job_.communicator(operation.comm).members.size();
    const int root = operation.peer < 0 ? 0 : member(operation.comm, operation.peer);
    char* out = buffer(static_cast<std::uint64_t>(n) * 8 * ranks);
    char* in = buffer(static_cast<std::uint64_t>(n) * 8 * ranks);
    MPI_Comm made = MPI_COMM_NULL;
#define RUN(Name, name, ...)                           \
  if (later) MPI_I##name(__VA_ARGS__, comm, &request); \
  else MPI_##Name(__VA_ARGS__, comm);                  \
  break
    switch (operation.kind) {
      case OpKind::kAllReduce: RUN(Allreduce, allreduce, out, in, n, type, op);
      case OpKind::kBroadcast: RUN(Bcast, bcast, in, n, type, root);
      case OpKind::kReduce: RUN(Reduce, reduce, out, in, n, type, op, root);
      case OpKind::kAllGather: RUN(Allgather, allgather, out, n, type, in, n, type);
      case OpKind::kReduceScatter: RUN(Reduce_scatter_block, reduce_scatter_block, out, in, n, type, op);
      case OpKind::kAllToAll: RUN(Alltoall, alltoall, out, n, type, in, n, type);
      case OpKind::kGather: RUN(Gather, gather, out, n, type, in, n, type, root);
      case OpKind::kScatter: RUN(Scatter, scatter, out, n, type, in, n, type, root);
      case OpKind::kScan: RUN(Scan, scan, out, in, n, type, op);
      case OpKind::kExscan: RUN(Exscan, exscan, out, in, n, type, op);
      case OpKind::kGatherV:
      case OpKind::kScatterV:
      case OpKind::kAllGatherV:
      case OpKind::kAllToAllV:
        return with_counts(operation, type, comm, root);
      case OpKind::kMonitoredBarrier:
      case OpKind::kBarrier:
        if (later) MPI_Ibarrier(comm, &request);
        else MPI_Barrier(comm);
        break;
      case OpKind::kSplit: {
        const std::string& color = job_.extra(operation).color;
        MPI_Comm_split(comm, color.empty() ? 0 : number(color, MPI_UNDEFINED), number(job_.extra(operation).key, rank_), &made);
        bind(operation, made);
        break;
      }
      case OpKind::kNewGroup:  // as torch does it over MPI
        new_group(operation, comm, made);
        bind(operation, made);
        break;
      case OpKind::kDup:
        MPI_Comm_dup(comm, &made);
        break;
      case OpKind::kFree:
      case OpKind::kDisconnect:
        MPI_Comm_free(&comms_[to_size(operation.comm)]);
        break;
      case OpKind::kInit:
        break;  // MPI_Init has been called
      case OpKind::kFinalize:
        break;  // and MPI_Finalize will be
      default:
        refuse(operation, "not run over MPI");
    }
#undef RUN
  }

  /// A communicator that a line made is the group of the Job that it can be, if there is one.
  void bind(const Operation& operation, MPI_Comm made) {
    if (made == MPI_COMM_NULL) return;
    for (const CommIndex comm : can_make(job_, job_.program(job_.program_of_rank(rank_)), operation))
      if (comms_[to_size(comm)] == MPI_COMM_NULL) {
        comms_[to_size(comm)] = made;
        return;
      }
  }

  void new_group(const Operation& operation, MPI_Comm comm, MPI_Comm& made) {
    std::vector<int> places;
    for (const std::int32_t rank : job_.extra(operation).members) places.push_back(member(operation.comm, rank));
    if (std::ranges::find(places, -1) != places.end()) return refuse(operation, "a member is not in the parent");
    MPI_Group all = MPI_GROUP_NULL;
    MPI_Group part = MPI_GROUP_NULL;
    MPI_Comm_group(comm, &all);
    MPI_Group_incl(all, static_cast<int>(places.size()), places.data(), &part);
    MPI_Comm_create(comm, part, &made);
    MPI_Group_free(&part);
    MPI_Group_free(&all);
  }

  struct Layout {
    std::vector<int> counts{};
    std::vector<int> starts{};
    int all = 0;
  };
  /// `otherwise` for each member where the line has no counts.
  static Layout layout(const std::vector<std::uint64_t>& counts, std::size_t ranks, int otherwise) {
    Layout made;
    for (std::size_t i = 0; i < ranks; ++i) {
      made.counts.push_back(i < counts.size() ? static_cast<int>(std::min(counts[i], kMostElements)) : otherwise);
      made.starts.push_back(made.all);
      made.all += made.counts.back();
    }
    return made;
  }

  /// The collectives with a count for each member; without counts at its root, every member's is the root's own.
  void with_counts(const Operation& operation, MPI_Datatype type, MPI_Comm comm, int root) {
    if (operation.nonblocking()) return refuse(operation, "not run over MPI without waiting");
    const OperationExtra& extra = job_.extra(operation);
    const std::size_t ranks = job_.communicator(operation.comm).members.size();
    const auto own = static_cast<int>(run_count(operation.count));
    const Layout out = layout(extra.counts, ranks, own);
    const Layout in = layout(extra.recv_counts.empty() ? extra.counts : extra.recv_counts, ranks, own);
    const auto bytes = [](int elements) { return static_cast<std::uint64_t>(elements) * 8; };
    char* sent = buffer(bytes(out.all + own));
    char* received = buffer(bytes(in.all + own));
    if (operation.kind == OpKind::kGatherV)
      MPI_Gatherv(sent, own, type, received, in.counts.data(), in.starts.data(), type, root, comm);
    else if (operation.kind == OpKind::kScatterV)
      MPI_Scatterv(sent, out.counts.data(), out.starts.data(), type, received, own, type, root, comm);
    else if (operation.kind == OpKind::kAllGatherV)
      MPI_Allgatherv(sent, own, type, received, in.counts.data(), in.starts.data(), type, comm);
    else
      MPI_Alltoallv(sent, out.counts.data(), out.starts.data(), type, received, in.counts.data(), in.starts.data(), type, comm);
  }

  const Job& job_;
  std::int32_t rank_;
  RankProgress& progress_;
  std::vector<MPI_Comm> comms_;
  std::map<std::string, std::vector<MPI_Request>> requests_{};
  std::vector<std::vector<char>> buffers_{};
};

int run(int argc, char** argv) {
  if (argc < 2) return kRunUsage;
  const std::vector<std::string> paths{argv[1]};
  const Result<Job> job = load_job(paths);
  if (!job) return kRunUnreadable;
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_SINGLE, &provided);
  int rank = 0;
  int ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  std::vector<RankProgress> own(static_cast<std::size_t>(ranks));
  RankProgress* page = own.data();
  if (const char* path = std::getenv("LOCKSTEP_RUNNER_PAGE"); path != nullptr) {
    const int file = open(path, O_RDWR | O_CLOEXEC);
    if (file >= 0) page = map_progress(file, ranks);
  }
  if (page == nullptr) return kRunFailed;
  page[rank].pid = getpid();
  MpiRank program(*job, rank, page[rank]);
#if LOCKSTEP_RUNNER_NCCL
  const RankOutcome outcome = program.run_with_nccl();
  if (!outcome.error.empty()) {
    std::fprintf(stderr, "rank %d: %s\n", rank, outcome.error.c_str());
    program.unsupported = program.unsupported || outcome.unsupported;
    if (!program.unsupported) _exit(kRunFailed);
  }
  page[rank].wrong_data = outcome.wrong_data ? 1 : 0;
#else
  program.run();
#endif
  if (program.unsupported) {
    std::fflush(stderr);
    _exit(kRunUnreadable);
  }
  const ProgramEnd end = end_of(*job, rank);
  if (end.kind == EndKind::kExited && end.status <= 0) MPI_Finalize();
  page[rank].phase = static_cast<std::uint32_t>(RankPhase::kEnded);
  end_as(end);
}

}  // namespace
}  // namespace lockstep::testing

int main(int argc, char** argv) { return lockstep::testing::run(argc, argv); }
