// Collectives, groups and waits; messages are in random_messages.cc.
#include "support/event_writer.h"

#include <algorithm>

namespace lockstep::testing {
namespace {

using enum OpKind;

/// What each library offers.
const std::vector<OpKind>& collective_kinds(Library library) {
  static const std::vector<OpKind> nccl{kAllReduce,     kBroadcast, kReduce, kAllGather,
                                        kReduceScatter, kAllToAll,  kGather, kScatter};
  static const std::vector<OpKind> torch{
      kAllReduce, kBroadcast, kReduce,     kAllGather, kReduceScatter,  kAllToAll,        kGather,
      kScatter,   kBarrier,   kAllGatherV, kAllToAllV, kReduceScatterV, kMonitoredBarrier};
  static const std::vector<OpKind> mpi{kAllReduce, kBroadcast,     kReduce,  kAllGather, kReduceScatter,
                                       kAllToAll,  kGather,        kScatter, kScan,      kExscan,
                                       kBarrier,   kAllGatherV,    kGatherV, kScatterV,  kAllToAllV,
                                       kAllToAllW, kReduceScatterV};
  static const std::vector<OpKind> all = [] {
    std::vector<OpKind> both = mpi;
    both.push_back(kMonitoredBarrier);
    return both;
  }();
  switch (library) {
    case Library::kNccl:
      return nccl;
    case Library::kTorch:
      return torch;
    case Library::kMpi:
      return mpi;
    case Library::kUnknown:
      return all;
  }
  return all;
}

}  // namespace

EventWriter::EventWriter(Random& random, JobSketch& job) : random_(random), job_(job) {}

const std::vector<std::int32_t>& EventWriter::members(int comm) const {
  return job_.communicators[static_cast<std::size_t>(comm)].members;
}

void EventWriter::append(std::int32_t rank, const SketchOp& op) {
  job_.programs[static_cast<std::size_t>(rank)].push_back(op);
}

std::string EventWriter::free_handle(std::int32_t rank) {
  // A program reuses its request variables: a name that was waited for comes back.
  auto& free = free_[rank];
  std::string handle = "q" + std::to_string(handles_[rank]);
  if (!free.empty() && random_.chance(70)) {
    handle = free.back();
    free.pop_back();
  } else {
    ++handles_[rank];
  }
  out_[rank].push_back(handle);
  return handle;
}

std::string EventWriter::random_stream() {
  static const std::vector<std::string> streams{"", "", "compute", "comm"};
  return random_.pick(streams);
}

std::string EventWriter::random_function() {
  static const std::vector<std::string> functions{"",          "",        "step", "reduce_gradients",
                                                  "clip_norm", "forward", "save"};
  return random_.pick(functions);
}

std::string EventWriter::random_count() {
  static const std::vector<std::string> symbols{"V*h/tp", "n", "b*s*h", "numel(w)"};
  if (random_.chance(20)) return random_.pick(symbols);
  return std::to_string(random_.between(1, random_.chance(50) ? 4 : 4096));
}

std::uint32_t EventWriter::next_launch(std::int32_t rank) { return ++launches_[rank]; }

SketchOp EventWriter::random_collective(int comm) {
  static const std::vector<std::string> types{"f32", "f32", "bf16", "f64", "i64", "u8"};
  static const std::vector<std::string> redops{"sum", "sum", "max", "min", "prod"};
  SketchOp op{.kind = random_.pick(collective_kinds(job_.library)), .comm = comm};
  op.function = random_function();
  if (op.kind == kBarrier || op.kind == kMonitoredBarrier) return op;
  op.datatype = random_.pick(types);
  op.count = random_count();
  if (has_root(op.kind)) op.peer = random_.pick(members(comm));
  if (has_reduction(op.kind)) op.redop = random_.pick(redops);
  if (op.kind == kReduceScatterV || (op.kind == kAllGatherV && random_.chance(50))) {
    for (std::size_t i = 0; i < members(comm).size(); ++i)
      op.counts.push_back(random_.below(std::uint64_t{9}));
  }
  return op;
}

SketchOp EventWriter::for_member(const SketchOp& collective, std::int32_t rank) {
  SketchOp op = collective;
  if (has_free_count(op.kind)) {
    const auto& all = members(op.comm);
    const auto place = static_cast<std::size_t>(std::ranges::find(all, rank) - all.begin());
    op.count = std::to_string(op.counts.empty() ? random_.below(std::uint64_t{100}) : op.counts[place]);
  }
  if (job_.library == Library::kNccl) op.stream = random_stream();
  if (random_.chance(3)) op.function = random_function();  // members may call from different lines
  return op;
}

void EventWriter::collective(int comm) {
  const SketchOp what = random_collective(comm);
  const bool nccl = job_.library == Library::kNccl;
  // Asynchronous on all members or on none: MPI does not let a blocking call meet a nonblocking one.
  const bool with_handle = what.kind != kMonitoredBarrier && random_.chance(nccl ? 15 : 30);
  const bool with_stream = !nccl && job_.library != Library::kMpi && random_.chance(10);
  for (const std::int32_t rank : members(comm)) {
    SketchOp op = for_member(what, rank);
    if (with_handle) op.handle = free_handle(rank);
    if (with_stream) op.stream = "side";
    append(rank, op);
  }
}

void EventWriter::plain_collective(int comm, OpKind kind, const std::vector<std::string>& colors) {
  const auto& all = members(comm);
  for (std::size_t i = 0; i < all.size(); ++i) {
    SketchOp op{.kind = kind, .comm = comm};
    if (!colors.empty()) op.color = colors[i];
    append(all[i], op);
  }
}

void EventWriter::compute(std::int32_t rank) { append(rank, {.kind = kCompute}); }

void EventWriter::group_over(const std::vector<int>& comms) {
  std::map<std::int32_t, std::vector<SketchOp>> parts;
  for (const int comm : comms) {
    for (int calls = random_.between(1, 2); calls > 0; --calls) {
      const SketchOp what = random_collective(comm);
      for (const std::int32_t rank : members(comm)) parts[rank].push_back(for_member(what, rank));
    }
  }
  if (members(comms.front()).size() > 1 && random_.chance(40)) {
    const Edge edge = random_edge(comms.front());
    SketchOp what = random_message(comms.front());
    what.kind = kSend;
    what.peer = edge.to;
    parts[edge.from].push_back(what);
    what.kind = kRecv;
    what.peer = edge.from;
    parts[edge.to].push_back(what);
  }
  for (auto& [rank, ops] : parts) {
    const std::uint32_t launch = next_launch(rank);
    append(rank, {.kind = kGroupStart, .launch = launch});
    for (SketchOp& op : ops) {
      op.launch = launch;
      append(rank, op);
    }
    append(rank, {.kind = kGroupEnd, .launch = launch});
  }
}

void EventWriter::device_calls(std::int32_t rank) {
  static const std::vector<std::string> events{"e0", "e1", "e2"};
  const int calls = random_.between(1, 3);
  for (int i = 0; i < calls; ++i) {
    switch (random_.below(6)) {
      case 0:
        append(rank, {.kind = OpKind::kStreamSync, .stream = random_stream()});
        break;
      case 1:
        append(rank, {.kind = OpKind::kDeviceSync});
        break;
      case 2:
        append(rank, {.kind = OpKind::kEventSync, .handle = random_.pick(events)});
        break;
      case 3:
        append(rank, {.kind = OpKind::kStreamWait, .stream = random_stream(), .handle = random_.pick(events)});
        break;
      default:
        append(rank, {.kind = OpKind::kEventRecord, .stream = random_stream(), .handle = random_.pick(events)});
        break;
    }
  }
}

void EventWriter::wait_for_some(std::int32_t rank, int percent) {
  auto& out = out_[rank];
  random_.shuffle(out);
  std::vector<std::string> kept;
  for (const std::string& handle : out) {
    if (!random_.chance(percent)) {
      kept.push_back(handle);
      continue;
    }
    append(rank, {.kind = kWait, .handle = handle});
    free_[rank].push_back(handle);
  }
  out = std::move(kept);
}

}  // namespace lockstep::testing
