// Writes the seeds of the fuzz target `trace` into a folder: traces that hold each kind of record once, as small as they can be.
#include <cstdio>
#include <fstream>
#include <string>

#include "support/trace_sample.h"

namespace {

using lockstep::OpKind;
using lockstep::testing::TraceSample;

void write(const std::string& path, const TraceSample& trace) {
  const std::string bytes = trace.bytes();
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

TraceSample sample(std::uint32_t blocks) {
  return TraceSample({.rank = 0, .ranks = 2, .blocks = blocks, .block_bytes = 512});
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
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
  return 0;
}
