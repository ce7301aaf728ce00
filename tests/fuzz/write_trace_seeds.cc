// Writes the seeds of the fuzz targets `trace` and `pack` into folders: traces that hold each kind of record once, as small as they
// can be, packs of them, and what the frame of a pack unpacks to.
#include <cstdio>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <zstd.h>

#include "pack/pack_writer.h"
#include "support/trace_sample.h"

namespace {

using lockstep::OpKind;
using lockstep::testing::TraceSample;

void write(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}
void write(const std::string& path, const TraceSample& trace) { write(path, trace.bytes()); }

bool write_packs(const std::string& folder, const std::vector<std::pair<std::string, std::string>>& traces) {
  std::string bytes;
  lockstep::PackWriter writer({}, [&bytes](std::string_view piece) {
    bytes += piece;
    return true;
  });
  for (const auto& [name, trace] : traces) {
    if (!writer.add(lockstep::pack::MemberKind::kTrace, name, trace)) return false;
  }
  if (!writer.finish()) return false;
  write(folder + "pack", bytes);
  const std::string_view frame = std::string_view(bytes).substr(sizeof(lockstep::pack::FileHeader));
  std::string unpacked(ZSTD_getFrameContentSize(frame.data(), frame.size()), '\0');
  if (ZSTD_isError(ZSTD_decompress(unpacked.data(), unpacked.size(), frame.data(), frame.size())) != 0) return false;
  write(folder + "frame", unpacked);
  return true;
}

TraceSample sample(std::uint32_t blocks) {
  return TraceSample({.rank = 0, .ranks = 2, .blocks = blocks, .block_bytes = 512});
}

/// Each kind of record that only NCCL's calls have: places of issue, makings, groups, host waits, graphs, signals, what grows.
void write_nccl(const std::string& folder) {
  using lockstep::trace::CreationRecord;
  using lockstep::trace::IssueRecord;
  const IssueRecord alone{.stream = 7, .device = 0};
  const IssueRecord grouped{.stream = 7, .launch = 1, .device = 0};
  const IssueRecord captured{.stream = 9, .capture = 3, .device = 0};
  TraceSample nccl({.rank = 0, .ranks = 2, .blocks = 6, .block_bytes = 1024});
  const std::uint32_t world = nccl.add_nccl_comm(0x1234, 2, 0, OpKind::kInit);
  nccl.add({.kind = OpKind::kInit, .comm = world, .tag = world}, CreationRecord{.key = 0, .members = 2, .group_hash = 0x1234});
  nccl.add({.kind = OpKind::kAllReduce, .comm = world, .count = 4, .datatype = 1, .redop = 1}, alone);
  nccl.add({.kind = OpKind::kGroupStart, .comm = 0, .count = 1, .tag = 1});
  nccl.add({.kind = OpKind::kSend, .comm = world, .count = 4, .datatype = 1, .peer = 1}, grouped);
  nccl.add({.kind = OpKind::kRecv, .comm = world, .count = 4, .datatype = 1, .peer = 1}, grouped);
  nccl.add({.kind = OpKind::kGroupEnd, .comm = 0, .count = 1, .tag = 1});
  nccl.add({.kind = OpKind::kEventRecord, .comm = 0, .request = 5}, alone);
  nccl.add({.kind = OpKind::kStreamWait, .comm = 0, .request = 5}, IssueRecord{.stream = 9, .device = 0});
  nccl.add({.kind = OpKind::kEventSync, .comm = 0, .request = 5}, alone);
  nccl.add({.kind = OpKind::kBroadcast, .comm = world, .count = 4, .datatype = 2, .peer = 0}, captured);
  nccl.add({.kind = OpKind::kGraphLaunch, .comm = 0}, captured);
  nccl.add({.kind = OpKind::kGraphLaunch, .comm = 0}, captured);
  nccl.add({.kind = OpKind::kPutSignal, .comm = world, .count = 4, .datatype = 1, .peer = 1}, alone);
  nccl.add({.kind = OpKind::kWaitSignal, .comm = world, .count = 1, .peer = 1}, alone);
  nccl.add({.kind = OpKind::kDeviceSync, .comm = 0, .returned = false}, alone);
  write(folder + "nccl", nccl);

  TraceSample grown({.rank = 0, .ranks = 3, .blocks = 4, .block_bytes = 1024});
  const std::uint32_t old = grown.add_nccl_comm(0x1234, 2, 0, OpKind::kInit);
  const std::uint32_t all = grown.add_nccl_comm(0x5678, 3, old, OpKind::kGrow, 0x9abc);
  grown.add({.kind = OpKind::kInit, .comm = old, .tag = old}, CreationRecord{.members = 2, .group_hash = 0x1234, .blocking = 2});
  grown.add({.kind = OpKind::kGrow, .comm = old, .tag = all}, CreationRecord{.key = -1, .members = 3, .group_hash = 0x9abc});
  grown.add({.kind = OpKind::kSplit, .comm = all}, CreationRecord{.color = lockstep::trace::kNoColor});
  grown.add({.kind = OpKind::kFinalize, .comm = all});
  write(folder + "grown", grown);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: %s TRACE_FOLDER PACK_FOLDER\n", argv[0]);
    return 2;
  }
  const std::string folder = std::string(argv[1]) + "/";
  TraceSample calls = sample(4);
  const std::uint32_t pair = calls.add_comm({1, 0}, 0, "pair");
  calls.add({.kind = OpKind::kAllReduce, .comm = pair, .count = 4, .datatype = 1, .redop = 1});
  calls.add({.kind = OpKind::kBroadcast, .count = 4, .datatype = 2, .peer = 1});
  calls.add({.kind = OpKind::kSend, .count = 1, .datatype = 1, .peer = 1, .tag = 5});
  calls.add_opaque("MPI_Win_create");
  calls.finish();
  write(folder + "calls", calls);

  TraceSample wrapped = sample(2);
  for (int i = 0; i < 200; ++i) wrapped.add({.kind = OpKind::kAllReduce, .count = 4, .datatype = 1, .redop = 1});
  write(folder + "wrapped", wrapped);

  TraceSample requests = sample(4);
  requests.add({.kind = OpKind::kIrecv, .count = 1, .datatype = 1, .peer = 1, .request = 1});
  requests.add({.kind = OpKind::kAllReduce, .count = 1, .datatype = 1, .redop = 2, .request = 2, .flags = 1});
  requests.add({.kind = OpKind::kTest, .request = 1, .flags = 1U << 5});
  requests.add({.kind = OpKind::kWait, .request = 2, .returned = false});
  write(folder + "requests", requests);

  TraceSample hung = sample(4);
  hung.add({.kind = OpKind::kRecv, .peer = -2, .tag = 0xffff'ffff, .flags = 3U << 3, .returned = false});
  write(folder + "hung", hung);
  TraceSample other({.rank = 1, .ranks = 2, .blocks = 4, .block_bytes = 512});
  other.add({.kind = OpKind::kBarrier, .returned = false});

  TraceSample vectors({.rank = 0, .ranks = 5, .blocks = 2, .block_bytes = 512});
  vectors.add_all_to_all({1, 2, 3, 4, 5}, {5, 4, 3, 2, 1});
  write(folder + "vectors", vectors);

  write_nccl(folder);
  return write_packs(std::string(argv[2]) + "/", {{"run/a.1.1.lst", hung.bytes()}, {"run/a.2.1.lst", other.bytes()}}) ? 0 : 1;
}
