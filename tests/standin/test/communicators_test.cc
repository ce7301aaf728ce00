// Communicators are made and ended as with the real library, and wrong arguments give its codes.
#include <gtest/gtest.h>

#include <thread>

#include "test/world.h"

namespace lockstep::standin::testing {
namespace {

using namespace nccl;
using Ranks = std::vector<int>;

float sum_over(ncclComm_t comm, float own) {
  const cudaStream_t stream = Rank::stream();
  float* data = Rank::device(std::vector<float>{own});
  ncclAllReduce(data, data, 1, ncclFloat32, ncclSum, comm, stream);
  cudaStreamSynchronize(stream);
  return Rank::host(data, 1)[0];
}

int rank_in(ncclComm_t comm) {
  int rank = -1;
  ncclCommUserRank(comm, &rank);
  return rank;
}

TEST(Communicators, SplitByColorInOrderOfKey) {
  const Outcome outcome = run_world(4, {}, [](Rank& rank) {
    const ncclComm_t comm = rank.communicator();
    ncclComm_t part = comm;
    const int color = rank.number == 3 ? -1 : rank.number % 2;
    rank.expect(ncclCommSplit(comm, color, -rank.number, &part, nullptr) == ncclSuccess, "split");
    if (rank.number == 3) return rank.expect(part == nullptr, "no colour, no communicator");
    rank.expect(rank_in(part) == (rank.number == 0 ? 1 : 0), "rank by key");
    rank.expect(sum_over(part, static_cast<float>(rank.number + 1)) == (rank.number == 1 ? 2.0F : 4.0F), "members");
    rank.expect(ncclCommFinalize(part) == ncclSuccess && ncclCommDestroy(part) == ncclSuccess, "end");
  });
  EXPECT_EQ(outcome.failures, "");
  EXPECT_EQ(outcome.ended, (Ranks{0, 1, 2, 3}));
}

TEST(Communicators, ASplitHoldsTheHostUntilAllCall) {
  const Outcome outcome = run_world(3, {}, [](Rank& rank) {
    const ncclComm_t comm = rank.communicator();
    ncclComm_t part = nullptr;
    if (rank.number != 1) ncclCommSplit(comm, 0, 0, &part, nullptr);
  });
  EXPECT_TRUE(outcome.stuck);
  EXPECT_EQ(outcome.ended, Ranks{1});
}

TEST(Communicators, AnInitHoldsTheHostUntilAllCall) {
  const Outcome outcome = run_world(3, {}, [](Rank& rank) {
    if (rank.number != 2) rank.communicator();
  });
  EXPECT_TRUE(outcome.stuck);
  EXPECT_EQ(outcome.ended, Ranks{2});
}

TEST(Communicators, ShrinkAndGrow) {
  const Outcome outcome = run_world(3, {}, [](Rank& rank) {
    const ncclComm_t comm = rank.communicator();
    ncclComm_t two = nullptr;
    int excluded = 1;
    if (rank.number != 1) {
      rank.expect(ncclCommShrink(comm, &excluded, 1, &two, nullptr, 0) == ncclSuccess, "shrink");
      rank.expect(rank_in(two) == (rank.number == 0 ? 0 : 1) && sum_over(two, 1) == 2.0F, "of two");
    }
    static ncclUniqueId id;  // handed over by the test as by any launcher
    if (rank.number == 0) rank.expect(ncclCommGetUniqueId(two, &id) == ncclSuccess, "id");
    rank.expect(sum_over(comm, 1) == 3.0F, "the old one goes on");  // and all have seen the id
    ncclComm_t three = nullptr;
    const ncclResult_t result = rank.number == 1
                                    ? ncclCommGrow(nullptr, 3, &id, 2, &three, nullptr)
                                    : ncclCommGrow(two, 3, rank.number == 0 ? &id : nullptr, -1, &three, nullptr);
    rank.expect(result == ncclSuccess, std::string("grow: ") + ncclGetLastError(nullptr));
    rank.expect(rank_in(three) == (rank.number == 1 ? 2 : rank.number / 2) && sum_over(three, 1) == 3.0F, "of three");
  });
  EXPECT_EQ(outcome.failures, "");
  EXPECT_EQ(outcome.ended, (Ranks{0, 1, 2}));
}

TEST(Communicators, OneThreadMakesAllOfADeviceGroup) {
  const Outcome outcome = run_world(1, {{"DEVICES", "3"}}, [](Rank& rank) {
    ncclUniqueId id;
    ncclGetUniqueId(&id);
    ncclComm_t grouped[3];
    ncclGroupStart();
    for (int i = 0; i < 3; ++i) {
      cudaSetDevice(i);
      ncclCommInitRank(&grouped[i], 3, id, i);
    }
    rank.expect(ncclGroupEnd() == ncclSuccess, "grouped init");
    ncclComm_t all[3];
    rank.expect(ncclCommInitAll(all, 3, nullptr) == ncclSuccess, "init all");
    for (ncclComm_t* comms : {grouped, all}) {
      float* data[3];
      cudaStream_t streams[3];
      ncclGroupStart();
      for (int i = 0; i < 3; ++i) {
        cudaSetDevice(i);
        streams[i] = Rank::stream();
        data[i] = Rank::device(std::vector<float>{1});
        ncclAllReduce(data[i], data[i], 1, ncclFloat32, ncclSum, comms[i], streams[i]);
      }
      rank.expect(ncclGroupEnd() == ncclSuccess, "grouped call");
      for (int i = 0; i < 3; ++i) {
        cudaStreamSynchronize(streams[i]);
        int device = -1;
        ncclCommCuDevice(comms[i], &device);
        rank.expect(Rank::host(data[i], 1)[0] == 3.0F && device == i, "of device " + std::to_string(i));
      }
    }
  });
  EXPECT_EQ(outcome.failures, "");
  EXPECT_EQ(outcome.ended, Ranks{0});
}

TEST(Communicators, ThoseThatDoNotBlockComeLater) {
  const Outcome outcome = run_world(2, {}, [](Rank& rank) {
    static ncclUniqueId id;
    const ncclComm_t first = rank.communicator();
    if (rank.number == 0) ncclGetUniqueId(&id);
    sum_over(first, 1);
    ncclConfig_t config{};
    config.size = offsetof(ncclConfig_t, cgaClusterSize);  // as a program built long ago has it
    config.magic = kConfigMagic;
    config.version = 21403;
    config.blocking = 0;
    ncclComm_t comm = nullptr;
    if (rank.number == 1) std::this_thread::sleep_for(std::chrono::milliseconds(50));
    rank.expect(ncclCommInitRankConfig(&comm, 2, id, rank.number, &config) == ncclInProgress, "in progress");
    ncclResult_t state = ncclInProgress;
    if (rank.number == 0) {
      int count = 0;
      rank.expect(ncclCommCount(comm, &count) == ncclInvalidArgument, "not to be used yet");
    }
    while (state == ncclInProgress) ncclCommGetAsyncError(comm, &state);
    rank.expect(state == ncclSuccess && sum_over(comm, 1) == 2.0F, "made");
  });
  EXPECT_EQ(outcome.failures, "");
  EXPECT_EQ(outcome.ended, (Ranks{0, 1}));
}

TEST(Communicators, AbortLetsGoOfWhatHangs) {
  const Outcome outcome = run_world(2, {}, [](Rank& rank) {
    const ncclComm_t comm = rank.communicator();
    if (rank.number == 1) return;
    const cudaStream_t stream = Rank::stream();
    float* data = Rank::device(std::vector<float>{1});
    ncclAllReduce(data, data, 1, ncclFloat32, ncclSum, comm, stream);
    rank.expect(cudaStreamSynchronize(nullptr) == 0, "another stream");
    rank.expect(ncclCommAbort(comm) == ncclSuccess, "abort");
    cudaStreamSynchronize(stream);
    rank.expect(ncclCommDestroy(comm) == ncclInvalidArgument, "gone");
  });
  EXPECT_EQ(outcome.failures, "");
  EXPECT_FALSE(outcome.stuck);
}

TEST(Arguments, GiveTheCodesOfTheRealLibrary) {
  const Outcome outcome = run_world(1, {}, [](Rank& rank) {
    const cudaStream_t stream = nullptr;
    float* data = Rank::device(std::vector<float>{1});
    int number = 0;
    rank.expect(ncclGetVersion(&number) == ncclSuccess && number == 22809, "version");
    rank.expect(ncclGroupStart() == ncclSuccess && ncclGroupEnd() == ncclSuccess, "empty group");
    rank.expect(ncclGroupEnd() == ncclInvalidUsage, "extra end of group");
    rank.expect(ncclAllReduce(data, data, 0, ncclFloat32, ncclSum, nullptr, stream) == ncclInvalidArgument, "no communicator");
    ncclGroupStart();
    rank.expect(ncclSend(data, 1, ncclFloat32, 0, nullptr, stream) == ncclInvalidArgument, "in a group");
    rank.expect(ncclGroupEnd() == ncclInvalidArgument, "which fails with it");
    rank.expect(ncclCommCount(nullptr, &number) == ncclInvalidArgument, "count of none");
    rank.expect(ncclCommDestroy(nullptr) == ncclSuccess && ncclCommAbort(nullptr) == ncclSuccess, "end of none");
    ncclUniqueId id{};
    ncclComm_t comm = nullptr;
    rank.expect(ncclCommInitRank(&comm, 2, id, 2) == ncclInvalidArgument && comm == nullptr, "no such rank");
    comm = rank.communicator();
    rank.expect(ncclBroadcast(data, data, 1, ncclFloat32, 1, comm, stream) == ncclInvalidArgument, "no such root");
    rank.expect(ncclAllGather(data, data, 1, static_cast<ncclDataType_t>(99), comm, stream) == ncclInvalidArgument, "no such type");
    rank.expect(ncclAllReduce(data, data, 1, ncclFloat32, static_cast<ncclRedOp_t>(77), comm, stream) == ncclInvalidArgument,
                "no such operator");
    rank.expect(ncclSend(data, 1, ncclFloat32, 0, comm, stream) == ncclInvalidUsage, "send to oneself alone");
  });
  EXPECT_EQ(outcome.failures, "");
  EXPECT_EQ(outcome.ended, Ranks{0});
}

}  // namespace
}  // namespace lockstep::standin::testing
