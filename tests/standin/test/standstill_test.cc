// Programs that are wrong stand still as on a GPU, with the very ranks that would, and each mode does what it says.
#include <gtest/gtest.h>
#include <unistd.h>

#include "test/world.h"

namespace lockstep::standin::testing {
namespace {

using namespace nccl;
using Ranks = std::vector<int>;

struct Buffers {
  float* send = Rank::device(std::vector<float>(8192));
  float* receive = Rank::device(std::vector<float>(8192));
};

void all_reduce(const Buffers& data, std::size_t count, ncclComm_t comm, cudaStream_t stream) {
  ncclAllReduce(data.send, data.receive, count, ncclFloat32, ncclSum, comm, stream);
}

TEST(Standstill, SkippingOneCallHoldsExactlyTheOthers) {
  const Outcome outcome = run_world(4, {}, [](Rank& rank) {
    const ncclComm_t comm = rank.communicator();
    const cudaStream_t stream = Rank::stream();
    const Buffers data;
    for (int i = 0; i < 3; ++i)
      if (i != 1 || rank.number != 1) all_reduce(data, 4, comm, stream);
    cudaStreamSynchronize(stream);
  });
  EXPECT_TRUE(outcome.stuck);
  EXPECT_EQ(outcome.ended, Ranks{1});
}

TEST(Standstill, TheFaultKnobSkipsAsTheProgramWould) {
  const auto body = [](Rank& rank) {
    const ncclComm_t comm = rank.communicator();
    const cudaStream_t stream = Rank::stream();
    const Buffers data;
    for (int i = 0; i < 3; ++i) all_reduce(data, static_cast<std::size_t>(4 + i), comm, stream);
    cudaStreamSynchronize(stream);
  };
  const Outcome skipped = run_world(3, {{"FAULT", "skip:rank=2,comm=0,seq=2"}}, body);
  EXPECT_TRUE(skipped.stuck);
  EXPECT_EQ(skipped.ended, Ranks{2});
  const Outcome reordered = run_world(3, {{"FAULT", "reorder:rank=0,comm=0,seq=1"}}, body);
  EXPECT_TRUE(reordered.stuck);
  EXPECT_EQ(reordered.ended, Ranks{});
  const Outcome delayed = run_world(3, {{"FAULT", "delay:rank=0,comm=0,seq=1,ms=30"}}, body);
  EXPECT_FALSE(delayed.stuck);
  EXPECT_EQ(delayed.ended, (Ranks{0, 1, 2}));
}

TEST(Standstill, GroupsAreSortedAsNcclDoesItOnlyInThatMode) {
  const auto body = [](Rank& rank) {
    const ncclComm_t comm = rank.communicator();
    const cudaStream_t stream = Rank::stream();
    const Buffers data;
    ncclGroupStart();
    all_reduce(data, rank.number == 0 ? 4 : 4096, comm, stream);
    all_reduce(data, rank.number == 0 ? 4096 : 4, comm, stream);
    ncclGroupEnd();
    cudaStreamSynchronize(stream);
  };
  EXPECT_TRUE(run_world(2, {{"GROUPS", "strict"}}, body).stuck);
  EXPECT_FALSE(run_world(2, {{"GROUPS", "nccl226"}}, body).stuck);
}

TEST(Standstill, CommunicatorsOfAGroupAreLaunchedInOneOrderOnlyInThatMode) {
  const auto body = [](Rank& rank) {
    const ncclComm_t first = rank.communicator(0);
    const ncclComm_t second = rank.communicator(1);
    const cudaStream_t stream = Rank::stream();
    const Buffers data;
    ncclGroupStart();
    all_reduce(data, 4, rank.number == 0 ? first : second, stream);
    all_reduce(data, 4, rank.number == 0 ? second : first, stream);
    ncclGroupEnd();
    cudaStreamSynchronize(stream);
  };
  EXPECT_TRUE(run_world(2, {{"GROUPS", "strict"}}, body).stuck);
  EXPECT_FALSE(run_world(2, {{"GROUPS", "nccl226"}}, body).stuck);
}

TEST(Standstill, OrderAcrossCommunicatorsMattersWhereOneRunsAtATime) {
  const auto body = [](Rank& rank) {
    const ncclComm_t first = rank.communicator(0);
    const ncclComm_t second = rank.communicator(1);
    const cudaStream_t streams[2] = {Rank::stream(), Rank::stream()};
    const Buffers data;
    for (int i = 0; i < 2; ++i) {
      const int which = (i + rank.number) % 2;
      all_reduce(data, 4, which == 0 ? first : second, streams[which]);
    }
    cudaDeviceSynchronize();
  };
  EXPECT_TRUE(run_world(2, {{"RESIDENT", "1"}}, body).stuck);
  EXPECT_FALSE(run_world(2, {{"RESIDENT", "2"}}, body).stuck);
  EXPECT_FALSE(run_world(2, {}, body).stuck);
  setenv("NCCL_LAUNCH_ORDER_IMPLICIT", "1", 1);
  EXPECT_TRUE(run_world(2, {}, body).stuck);
  unsetenv("NCCL_LAUNCH_ORDER_IMPLICIT");
}

TEST(Standstill, SendsPassEachOtherOnlyWhereTheyAreBuffered) {
  const auto exchange = [](std::size_t count) {
    return [count](Rank& rank) {
      const ncclComm_t comm = rank.communicator();
      const cudaStream_t stream = Rank::stream();
      const Buffers data;
      ncclSend(data.send, count, ncclFloat32, 1 - rank.number, comm, stream);
      ncclRecv(data.receive, count, ncclFloat32, 1 - rank.number, comm, stream);
      cudaStreamSynchronize(stream);
    };
  };
  EXPECT_TRUE(run_world(2, {{"P2P", "rendezvous"}}, exchange(16)).stuck);
  EXPECT_FALSE(run_world(2, {{"P2P", "eager"}}, exchange(16)).stuck);
  EXPECT_TRUE(run_world(2, {{"P2P", "eager"}, {"EAGER_BYTES", "32"}}, exchange(16)).stuck);
  EXPECT_TRUE(run_world(2, {{"P2P", "eager"}}, exchange(8192)).stuck);
}

TEST(Standstill, MessagesOfAGroupPassEachOther) {
  const Outcome outcome = run_world(3, {}, [](Rank& rank) {
    const ncclComm_t comm = rank.communicator();
    const cudaStream_t stream = Rank::stream();
    constexpr std::size_t kCount = 50'000;  // more than fits on the way
    std::vector<float> values(kCount, static_cast<float>(rank.number));
    float* send = Rank::device(values);
    float* receive = Rank::device(std::vector<float>(kCount * 3));
    ncclGroupStart();
    for (std::size_t peer = 0; peer < 3; ++peer) {  // oneself included
      ncclSend(send, kCount, ncclFloat32, static_cast<int>(peer), comm, stream);
      ncclRecv(receive + peer * kCount, kCount, ncclFloat32, static_cast<int>(peer), comm, stream);
    }
    ncclGroupEnd();
    cudaStreamSynchronize(stream);
    const auto got = Rank::host(receive, kCount * 3);
    for (std::size_t i = 0; i < got.size(); ++i)
      if (got[i] != static_cast<float>(i / kCount)) return rank.expect(false, "at " + std::to_string(i));
  });
  EXPECT_FALSE(outcome.stuck);
  EXPECT_EQ(outcome.failures, "");
  EXPECT_EQ(outcome.ended, (Ranks{0, 1, 2}));
}

void mismatch(Rank& rank) {
  const ncclComm_t comm = rank.communicator();
  const cudaStream_t stream = Rank::stream();
  const Buffers data;
  all_reduce(data, 4, comm, stream);
  all_reduce(data, rank.number == 1 ? 5 : 4, comm, stream);
  cudaStreamSynchronize(stream);
}

TEST(OnMismatch, Hangs) {
  const Outcome outcome = run_world(3, {}, mismatch);
  EXPECT_TRUE(outcome.stuck);
  EXPECT_EQ(outcome.ended, Ranks{});
}

TEST(OnMismatch, GoesOnWithWhatThereIs) {
  const Outcome outcome = run_world(3, {{"ON_MISMATCH", "corrupt"}}, mismatch);
  EXPECT_FALSE(outcome.stuck);
  EXPECT_EQ(outcome.ended, (Ranks{0, 1, 2}));
}

TEST(OnMismatch, SaysWhoCalledWhatAndWhere) {
  const Outcome outcome = run_world(3, {{"ON_MISMATCH", "detect"}}, mismatch);
  EXPECT_EQ(outcome.exit_code, 123);
  EXPECT_NE(outcome.stderr_text.find("at collective #1: ranks 0,2: all_reduce f32[4] sum; rank 1: all_reduce f32[5] sum"),
            std::string::npos)
      << outcome.stderr_text;
}

TEST(OnMismatch, TypesOfEqualSizeAreNoneWhereBytesAreMoved) {
  const Outcome outcome = run_world(2, {{"ON_MISMATCH", "detect"}}, [](Rank& rank) {
    const ncclComm_t comm = rank.communicator();
    const cudaStream_t stream = Rank::stream();
    const Buffers data;
    ncclBroadcast(data.send, data.receive, rank.number == 0 ? 8 : 2, rank.number == 0 ? ncclInt8 : ncclInt32, 0, comm, stream);
    cudaStreamSynchronize(stream);
  });
  EXPECT_EQ(outcome.exit_code, 0) << outcome.stderr_text;
  EXPECT_EQ(outcome.ended, (Ranks{0, 1}));
}

TEST(Standstill, AnEmptyCollectiveIsNoneAndAnEmptyMessageIsOne) {
  EXPECT_FALSE(run_world(2, {}, [](Rank& rank) {
                 const ncclComm_t comm = rank.communicator();
                 const cudaStream_t stream = Rank::stream();
                 const Buffers data;
                 if (rank.number == 0) all_reduce(data, 0, comm, stream);
                 all_reduce(data, 4, comm, stream);
                 cudaStreamSynchronize(stream);
               }).stuck);
  const Outcome message = run_world(2, {}, [](Rank& rank) {
    const ncclComm_t comm = rank.communicator();
    const cudaStream_t stream = Rank::stream();
    const Buffers data;
    if (rank.number == 0) ncclSend(data.send, 0, ncclFloat32, 1, comm, stream);
    cudaStreamSynchronize(stream);
  });
  EXPECT_TRUE(message.stuck);
  EXPECT_EQ(message.ended, Ranks{1});
}

TEST(Standstill, AProcessIsEndedWithALineThatNamesTheCall) {
  const Outcome outcome = run_world(2, {{"TIMEOUT", "0.3"}}, [](Rank& rank) {
    const ncclComm_t comm = rank.communicator();
    const cudaStream_t stream = Rank::stream();
    const Buffers data;
    if (rank.number == 0) all_reduce(data, 4, comm, stream);
    if (rank.number == 0) cudaStreamSynchronize(stream);
    else
      while (true) usleep(1000);  // busy for ever: no standstill that could be known at once
  });
  EXPECT_EQ(outcome.exit_code, 124);
  EXPECT_NE(outcome.stderr_text.find("rank 0 in all_reduce f32[4] sum, collective #0 on communicator"), std::string::npos)
      << outcome.stderr_text;
  EXPECT_NE(outcome.stderr_text.find("without rank 1"), std::string::npos) << outcome.stderr_text;
}

}  // namespace
}  // namespace lockstep::standin::testing
