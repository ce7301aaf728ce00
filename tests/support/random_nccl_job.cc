// Chooses communicators, streams and events; see the header.
#include "support/random_nccl_job.h"

#include <algorithm>

#include "support/random.h"

namespace lockstep::testing {
namespace {

class NcclGenerator {
 public:
  explicit NcclGenerator(std::uint64_t seed) : random_(seed) {}

  JobSketch generate() {
    job_.library = Library::kNccl;
    const int ranks = random_.between(2, 4);
    job_.programs.resize(static_cast<std::size_t>(ranks));
    job_.ends.assign(job_.programs.size(), {.kind = EndKind::kExited});
    launches_.assign(job_.programs.size(), 0);
    choose_communicators(ranks);
    streams_ = random_.between(1, 3);
    const int events = random_.between(3, 12);
    for (int i = 0; i < events; ++i) event();
    return std::move(job_);
  }

 private:
  void choose_communicators(int ranks) {
    std::vector<std::int32_t> all;
    for (int rank = 0; rank < ranks; ++rank) all.push_back(rank);
    job_.communicators.push_back({.name = "world", .members = all});
    const int others = random_.between(0, 3);
    for (int i = 0; i < others; ++i) {
      std::vector<std::int32_t> members = all;
      random_.shuffle(members);
      members.resize(static_cast<std::size_t>(random_.between(2, ranks)));
      if (!random_.chance(20)) std::ranges::sort(members);
      job_.communicators.push_back({.name = "sub" + std::to_string(i), .members = members});
    }
  }

  const std::vector<std::int32_t>& members(int comm) const {
    return job_.communicators[static_cast<std::size_t>(comm)].members;
  }

  std::vector<SketchOp>& program(std::int32_t rank) { return job_.programs[static_cast<std::size_t>(rank)]; }

  int some_communicator() { return random_.below(static_cast<int>(job_.communicators.size())); }
  std::string some_stream() { return "s" + std::to_string(random_.below(streams_)); }

  void event() {
    switch (random_.below(10)) {
      case 0:
      case 1:
      case 2:
      case 3:
        return collective(some_communicator(), some_stream());
      case 4:
      case 5:
        return group();
      case 6:
        return ring();
      case 7:
        return message(some_communicator(), some_stream());
      case 8:
        return split();
      default:
        return host_wait();
    }
  }

  void add(std::int32_t rank, SketchOp op) {
    if (grouped_) op.launch = launches_[static_cast<std::size_t>(rank)];
    program(rank).push_back(std::move(op));
  }

  void collective(int comm, const std::string& stream) {
    static const std::vector<OpKind> kinds{OpKind::kAllReduce,     OpKind::kAllReduce, OpKind::kBroadcast, OpKind::kReduce,
                                           OpKind::kReduceScatter, OpKind::kAllGather, OpKind::kAllToAll};
    static const std::vector<std::string> types{"f32", "i32", "u8", "bf16"};
    static const std::vector<std::string> counts{"1", "4", "16", "1000", "20000"};
    SketchOp op;
    op.kind = random_.pick(kinds);
    op.comm = comm;
    op.datatype = random_.pick(types);
    op.count = random_.pick(counts);
    op.stream = stream;
    if (has_reduction(op.kind)) op.redop = random_.chance(80) ? "sum" : "max";
    if (has_root(op.kind)) op.peer = random_.pick(members(comm));
    for (const std::int32_t rank : members(comm)) add(rank, op);
  }

  void message(int comm, const std::string& stream) {
    const std::int32_t from = random_.pick(members(comm));
    const std::int32_t to = random_.pick(members(comm));
    if (from != to) message(comm, stream, from, to);
  }

  void message(int comm, const std::string& stream, std::int32_t from, std::int32_t to) {
    SketchOp op;
    op.comm = comm;
    op.datatype = "f32";
    op.count = random_.chance(70) ? "8" : "30000";
    op.stream = stream;
    op.kind = OpKind::kSend;
    op.peer = to;
    add(from, op);
    op.kind = OpKind::kRecv;
    op.peer = from;
    add(to, op);
  }

  /// What follows until end_group() is one group on every rank that takes part.
  void begin_group() {
    grouped_ = true;
    for (std::uint32_t& launch : launches_) ++launch;
  }
  void end_group() { grouped_ = false; }

  void group() {
    const std::string stream = some_stream();
    const bool one_communicator = random_.chance(60);
    const bool one_stream = random_.chance(70);
    const int comm = some_communicator();
    begin_group();
    const int calls = random_.between(2, 4);
    for (int i = 0; i < calls; ++i) {
      const int on = one_communicator ? comm : some_communicator();
      const std::string queue = one_stream ? stream : some_stream();
      if (random_.chance(60)) collective(on, queue);
      else message(on, queue);
    }
    end_group();
  }

  void ring() {
    const int comm = some_communicator();
    const std::string stream = some_stream();
    begin_group();
    const auto& ranks = members(comm);
    for (std::size_t i = 0; i < ranks.size(); ++i) message(comm, stream, ranks[i], ranks[(i + 1) % ranks.size()]);
    end_group();
  }

  void split() {
    const int comm = some_communicator();
    for (std::size_t i = 0; i < members(comm).size(); ++i) {
      SketchOp op;
      op.kind = OpKind::kSplit;
      op.comm = comm;
      op.color = std::to_string(i % 2);
      add(members(comm)[i], op);
    }
  }

  void host_wait() {
    for (std::size_t rank = 0; rank < job_.programs.size(); ++rank) {
      if (random_.chance(40)) continue;
      SketchOp op;
      op.kind = random_.chance(50) ? OpKind::kDeviceSync : OpKind::kStreamSync;
      if (op.kind == OpKind::kStreamSync) op.stream = some_stream();
      job_.programs[rank].push_back(op);
    }
  }

  Random random_;
  JobSketch job_{};
  std::vector<std::uint32_t> launches_{};
  bool grouped_ = false;
  int streams_ = 1;
};

}  // namespace

JobSketch random_nccl_job(std::uint64_t seed) { return NcclGenerator(seed).generate(); }

}  // namespace lockstep::testing
