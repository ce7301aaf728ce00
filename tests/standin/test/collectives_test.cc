// Every collective, type and operator gives what plain arithmetic gives, in every size of communicator.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "test/world.h"

namespace lockstep::standin::testing {
namespace {

using namespace nccl;

/// The test's own conversion, by value instead of by bits: small whole numbers are exact in all of the types.
struct F16 {
  std::uint16_t bits = 0;
};
struct Bf16 {
  std::uint16_t bits = 0;
};
template <class T>
double number(T value) {
  if constexpr (std::is_same_v<T, F16>) {
    const int exponent = (value.bits >> 10) & 31;
    if (exponent == 0) return 0;
    double result = 1 + (value.bits & 1023) / 1024.0;
    for (int i = 15; i < exponent; ++i) result *= 2;
    for (int i = exponent; i < 15; ++i) result /= 2;
    return result;
  } else if constexpr (std::is_same_v<T, Bf16>) {
    const std::uint32_t bits = std::uint32_t{value.bits} << 16;
    float wide = 0;
    std::memcpy(&wide, &bits, sizeof wide);
    return wide;
  } else {
    return static_cast<double>(value);
  }
}
template <class T>
T element(int value) {
  if constexpr (std::is_same_v<T, F16>) {
    for (std::uint32_t bits = 0; bits < 0x7c00; ++bits)
      if (number(F16{static_cast<std::uint16_t>(bits)}) == value) return {static_cast<std::uint16_t>(bits)};
    return {};
  } else if constexpr (std::is_same_v<T, Bf16>) {
    const auto wide = static_cast<float>(value);
    std::uint32_t bits = 0;
    std::memcpy(&bits, &wide, sizeof bits);
    return {static_cast<std::uint16_t>(bits >> 16)};
  } else {
    return static_cast<T>(value);
  }
}

/// What rank r puts at place i: 1 ... 3, so that products fit into a byte.
int sent(int rank, std::size_t i) { return 1 + (rank + static_cast<int>(i)) % 3; }

double reduced(int op, int ranks, std::size_t i) {
  double result = sent(0, i);
  for (int rank = 1; rank < ranks; ++rank) {
    const double next = sent(rank, i);
    if (op == ncclProd) result *= next;
    else if (op == ncclMax) result = std::max(result, next);
    else if (op == ncclMin) result = std::min(result, next);
    else result += next;
  }
  return result;
}

template <class T>
void check_type(Rank& rank, ncclComm_t comm, cudaStream_t stream, ncclDataType_t type) {
  const auto ranks = static_cast<std::size_t>(rank.ranks);
  const auto me = static_cast<std::size_t>(rank.number);
  constexpr std::size_t kCount = 5;
  std::vector<T> out(kCount * ranks);
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = element<T>(sent(rank.number, i));
  T* send = Rank::device(out);
  T* receive = Rank::device(std::vector<T>(kCount * ranks));
  const auto check = [&](const std::string& name, ncclResult_t result, std::size_t count, auto expected) {
    cudaStreamSynchronize(stream);
    rank.expect(result == ncclSuccess, name + " returns");
    const std::vector<T> got = Rank::host(receive, count);
    for (std::size_t i = 0; i < count; ++i)
      rank.expect(number(got[i]) == expected(i), name + " type " + std::to_string(type) + " at " + std::to_string(i) + ": " +
                                                     std::to_string(number(got[i])) + ", not " + std::to_string(expected(i)));
  };
  const int root = rank.ranks - 1;
  for (const ncclRedOp_t op : {ncclSum, ncclProd, ncclMax, ncclMin}) {
    const std::string with = " op " + std::to_string(op);
    check("AllReduce" + with, ncclAllReduce(send, receive, kCount, type, op, comm, stream), kCount,
          [&](std::size_t i) { return reduced(op, rank.ranks, i); });
    check("ReduceScatter" + with, ncclReduceScatter(send, receive, kCount, type, op, comm, stream), kCount,
          [&](std::size_t i) { return reduced(op, rank.ranks, me * kCount + i); });
    check("Reduce" + with, ncclReduce(send, receive, kCount, type, op, root, comm, stream),
          rank.number == root ? kCount : 0, [&](std::size_t i) { return reduced(op, rank.ranks, i); });
  }
  check("Broadcast", ncclBroadcast(send, receive, kCount, type, root, comm, stream), kCount,
        [&](std::size_t i) { return double(sent(root, i)); });
  check("AllGather", ncclAllGather(send, receive, kCount, type, comm, stream), kCount * ranks,
        [&](std::size_t i) { return double(sent(static_cast<int>(i / kCount), i % kCount)); });
  check("AlltoAll", ncclAlltoAll(send, receive, kCount, type, comm, stream), kCount * ranks,
        [&](std::size_t i) { return double(sent(static_cast<int>(i / kCount), me * kCount + i % kCount)); });
  check("Gather", ncclGather(send, receive, kCount, type, root, comm, stream), rank.number == root ? kCount * ranks : 0,
        [&](std::size_t i) { return double(sent(static_cast<int>(i / kCount), i % kCount)); });
  check("Scatter", ncclScatter(send, receive, kCount, type, root, comm, stream), kCount,
        [&](std::size_t i) { return double(sent(root, me * kCount + i)); });
  // In place.
  check("Bcast", ncclBcast(receive, kCount, type, 0, comm, stream), 0, [](std::size_t) { return 0.0; });
}

class Collectives : public ::testing::TestWithParam<int> {};

TEST_P(Collectives, GiveWhatArithmeticGives) {
  const Outcome outcome = run_world(GetParam(), {}, [](Rank& rank) {
    const ncclComm_t comm = rank.communicator();
    const cudaStream_t stream = Rank::stream();
    check_type<float>(rank, comm, stream, ncclFloat32);
    check_type<double>(rank, comm, stream, ncclFloat64);
    check_type<std::int8_t>(rank, comm, stream, ncclInt8);
    check_type<std::uint8_t>(rank, comm, stream, ncclUint8);
    check_type<std::int32_t>(rank, comm, stream, ncclInt32);
    check_type<std::uint32_t>(rank, comm, stream, ncclUint32);
    check_type<std::int64_t>(rank, comm, stream, ncclInt64);
    check_type<std::uint64_t>(rank, comm, stream, ncclUint64);
    check_type<F16>(rank, comm, stream, ncclFloat16);
    check_type<Bf16>(rank, comm, stream, ncclBfloat16);
  });
  EXPECT_EQ(outcome.failures, "");
  EXPECT_FALSE(outcome.stuck);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.stderr_text;
  EXPECT_EQ(outcome.ended.size(), static_cast<std::size_t>(GetParam()));
}
INSTANTIATE_TEST_SUITE_P(Ranks, Collectives, ::testing::Values(1, 2, 3, 4));

TEST(Collectives, MoveMoreThanOneChunk) {
  const Outcome outcome = run_world(3, {}, [](Rank& rank) {
    const ncclComm_t comm = rank.communicator();
    const cudaStream_t stream = Rank::stream();
    constexpr std::size_t kCount = 70'001;  // no multiple of a chunk
    std::vector<std::int32_t> values(kCount * 3);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::int32_t>(i) * (rank.number + 1);
    std::int32_t* send = Rank::device(values);
    std::int32_t* receive = Rank::device(std::vector<std::int32_t>(values.size()));
    ncclAllGather(send, receive, kCount, ncclInt32, comm, stream);
    cudaStreamSynchronize(stream);
    auto got = Rank::host(receive, values.size());
    for (std::size_t i = 0; i < got.size() && got[i] == static_cast<std::int32_t>(i % kCount * (i / kCount + 1)); ++i)
      if (i + 1 == got.size()) got.clear();
    rank.expect(got.empty(), "AllGather");
    ncclReduceScatter(send, receive, kCount, ncclInt32, ncclSum, comm, stream);
    cudaStreamSynchronize(stream);
    got = Rank::host(receive, kCount);
    for (std::size_t i = 0; i < kCount; ++i)
      if (got[i] != static_cast<std::int32_t>((kCount * static_cast<std::size_t>(rank.number) + i) * 6)) return rank.expect(false, "ReduceScatter");
  });
  EXPECT_EQ(outcome.failures, "");
  EXPECT_EQ(outcome.ended.size(), 3U);
}

TEST(Collectives, AverageAndScaleBeforeTheSum) {
  const Outcome outcome = run_world(2, {}, [](Rank& rank) {
    const ncclComm_t comm = rank.communicator();
    const cudaStream_t stream = Rank::stream();
    float* data = Rank::device(std::vector<float>{rank.number == 0 ? 1.0F : 4.0F});
    float* result = Rank::device(std::vector<float>{0});
    ncclAllReduce(data, result, 1, ncclFloat32, ncclAvg, comm, stream);
    cudaStreamSynchronize(stream);
    rank.expect(Rank::host(result, 1)[0] == 2.5F, "average");
    std::int32_t* whole = Rank::device(std::vector<std::int32_t>{rank.number == 0 ? 1 : 4});
    ncclAllReduce(whole, whole, 1, ncclInt32, ncclAvg, comm, stream);
    cudaStreamSynchronize(stream);
    rank.expect(Rank::host(whole, 1)[0] == 2, "average of integers is cut off");
    float scalar = rank.number == 0 ? 10.0F : 100.0F;
    if (rank.number == 1) {  // numbers of operators may differ between ranks
      ncclRedOp_t unused{};
      ncclRedOpCreatePreMulSum(&unused, &scalar, ncclFloat32, ncclScalarHostImmediate, comm);
    }
    ncclRedOp_t op{};
    ncclRedOpCreatePreMulSum(&op, &scalar, ncclFloat32, ncclScalarHostImmediate, comm);
    ncclAllReduce(data, result, 1, ncclFloat32, op, comm, stream);
    cudaStreamSynchronize(stream);
    rank.expect(Rank::host(result, 1)[0] == 410.0F, "scaled sum");
    rank.expect(ncclRedOpDestroy(op, comm) == ncclSuccess, "destroy");
    rank.expect(ncclAllReduce(data, result, 1, ncclFloat32, op, comm, stream) == ncclInvalidArgument, "use after destroy");
    rank.expect(ncclRedOpDestroy(ncclSum, comm) == ncclInvalidArgument, "destroy of a built-in one");
  });
  EXPECT_EQ(outcome.failures, "");
  EXPECT_EQ(outcome.ended.size(), 2U);
}

}  // namespace
}  // namespace lockstep::standin::testing
