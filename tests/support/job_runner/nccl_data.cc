// Fills and checks buffers.
#include "nccl_data.h"

#include <cstring>

#include "nccl_api.h"

namespace lockstep::testing {
namespace {

/// `count` elements of the number `value`, for the types whose results are checked.
std::vector<char> pattern(std::string_view type, std::uint64_t count, std::int64_t value) {
  std::vector<char> bytes;
  const auto fill = [&](auto element) {
    bytes.resize(count * sizeof element);
    for (std::uint64_t i = 0; i < count; ++i) std::memcpy(bytes.data() + i * sizeof element, &element, sizeof element);
  };
  if (type == "f32") fill(static_cast<float>(value));
  else if (type == "f64") fill(static_cast<double>(value));
  else if (type == "i32" || type == "u32") fill(static_cast<std::int32_t>(value));
  else if (type == "i64" || type == "u64") fill(value);
  else if (type == "i8" || type == "u8") fill(static_cast<std::int8_t>(value));
  return bytes;
}

std::uint64_t sent_blocks(const DataCall& call) {
  const auto ranks = static_cast<std::uint64_t>(call.ranks);
  switch (call.kind) {
    case OpKind::kReduceScatter:
    case OpKind::kAllToAll:
    case OpKind::kScatter:
      return ranks;
    default:
      return 1;
  }
}

std::uint64_t received_blocks(const DataCall& call) {
  const auto ranks = static_cast<std::uint64_t>(call.ranks);
  return call.kind == OpKind::kAllGather || call.kind == OpKind::kAllToAll || call.kind == OpKind::kGather ? ranks : 1;
}

std::int64_t reduced(const DataCall& call) {
  const std::int64_t n = call.ranks;
  if (call.redop == "max") return n;
  if (call.redop == "min") return 1;
  return n * (n + 1) / 2;
}

}  // namespace

int nccl_datatype(std::string_view type) {
#define X(name, value, bytes, text) \
  if (type == text) return value;
  LOCKSTEP_NCCL_DATATYPES(X)
#undef X
  return type.empty() ? nccl::ncclFloat32 : nccl::ncclUint8;
}

int nccl_redop(std::string_view redop) {
#define X(name, value, text) \
  if (redop == text) return value;
  LOCKSTEP_NCCL_REDOPS(X)
#undef X
  return nccl::ncclSum;
}

CallBuffers::CallBuffers(const DataCall& call, bool check) : call_(call) {
  const std::vector<char> own = pattern(call.type.empty() ? "f32" : call.type, call.count, call.rank + 1);
  const std::uint64_t element = 8;  // the largest: what a partner sends too much must not end this process
  const std::uint64_t send_bytes = call.count * element * sent_blocks(call) + 8;
  const std::uint64_t receive_bytes = call.count * element * received_blocks(call) + 8;
  if (nccl::cudaMalloc(&send_, send_bytes) != 0 || nccl::cudaMalloc(&receive_, receive_bytes) != 0) return;
  // Sums of one byte wrap beyond a few ranks, and products and averages are not foretold.
  check_ = check && !own.empty() && (call.redop.empty() || call.redop == "sum" || call.redop == "max" || call.redop == "min") &&
           (call.type != "i8" && call.type != "u8" ? call.ranks < 1000 : call.ranks < 15);
  if (!check) return;
  nccl::cudaMemset(send_, 0, send_bytes);
  nccl::cudaMemset(receive_, 0, receive_bytes);
  for (std::uint64_t block = 0; block < sent_blocks(call) && !own.empty(); ++block)
    nccl::cudaMemcpy(static_cast<char*>(send_) + block * own.size(), own.data(), own.size(), 1);
}

bool CallBuffers::is_right() const {
  if (!check_) return true;
  const std::string_view type = call_.type.empty() ? "f32" : call_.type;
  std::vector<std::int64_t> expected;  // by block
  switch (call_.kind) {
    case OpKind::kAllReduce:
    case OpKind::kReduceScatter:
      expected = {reduced(call_)};
      break;
    case OpKind::kReduce:
      if (call_.peer == call_.rank) expected = {reduced(call_)};
      break;
    case OpKind::kBroadcast:
    case OpKind::kScatter:
    case OpKind::kRecv:
      expected = {call_.peer + 1};
      break;
    case OpKind::kAllGather:
    case OpKind::kAllToAll:
    case OpKind::kGather:
      for (int rank = 0; rank < call_.ranks && (call_.kind != OpKind::kGather || call_.peer == call_.rank); ++rank)
        expected.push_back(rank + 1);
      break;
    default:
      break;
  }
  std::vector<char> got;
  for (std::size_t block = 0; block < expected.size(); ++block) {
    const std::vector<char> wanted = pattern(type, call_.count, expected[block]);
    got.resize(wanted.size());
    if (wanted.empty()) continue;
    nccl::cudaMemcpy(got.data(), static_cast<char*>(receive_) + block * wanted.size(), wanted.size(), 2);
    if (got != wanted) return false;
  }
  return true;
}

}  // namespace lockstep::testing
