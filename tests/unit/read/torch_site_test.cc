// Whose frames lead where torch stands between the user and the call.
#include "read/torch_site.h"

#include <gtest/gtest.h>

#include "diagnose/site_words.h"
#include "model/via_frame.h"

namespace lockstep {
namespace {

const std::string kTorch = "/usr/lib/python3/dist-packages/torch/";
const Frame kAllReduce{kTorch + "distributed/distributed_c10d.py", "all_reduce", 1534};
const Frame kStep{"/home/u/train.py", "train_step", 212};
const Frame kLoop{"/home/u/train.py", "train", 240};
const Frame kMain{"/home/u/train.py", "<module>", 300};

std::string text_of(const std::vector<Frame>& frames, std::string_view op) {
  return torch_site_text(torch_site(frames).frames, op);
}

TEST(TorchSite, LeadsWithTheLineOfTheUser) {
  const CallSite site = torch_site({kAllReduce, kStep, kLoop, kMain});
  EXPECT_EQ(site.frames.front(), kStep);
  EXPECT_EQ(via_of(site.frames), "all_reduce");
  EXPECT_EQ(torch_site_text(site.frames, "all_reduce"), "train.py:212 in train_step < train");
}

TEST(TorchSite, NamesTheFunctionThatWasCalled) {
  const Frame gather{kTorch + "distributed/distributed_c10d.py", "all_gather", 2000};
  const Frame wrapper{kTorch + "distributed/c10d_logger.py", "_exception_logger.<locals>.wrapper", 83};
  const Frame object{kTorch + "distributed/distributed_c10d.py", "all_gather_object", 3000};
  EXPECT_EQ(text_of({gather, wrapper, object, wrapper, kStep, kMain}, "all_gather"),
            "train.py:212 in train_step -> all_gather_object");
  const Frame send{kTorch + "distributed/distributed_c10d.py", "send", 1200};
  EXPECT_EQ(text_of({send, wrapper, kStep}, "isend"), "train.py:212 in train_step");
}

TEST(TorchSite, NamesWhatTorchDoesByItself) {
  const Frame bucket{"", "DistributedDataParallel bucket 3", 0};
  const Frame backward{kTorch + "_tensor.py", "Tensor.backward", 488};
  EXPECT_EQ(text_of({bucket, backward, kStep, kMain}, "all_reduce"),
            "train.py:212 in train_step -> DistributedDataParallel bucket 3");
}

TEST(TorchSite, NamesTheMethodOfTorchThatAProgramCalls) {
  const std::string zero = kTorch + "distributed/optim/zero_redundancy_optimizer.py";
  const Frame broadcast{kTorch + "distributed/distributed_c10d.py", "broadcast", 1400};
  const Frame from_rank{zero, "ZeroRedundancyOptimizer._broadcast_params_from_rank", 700};
  const Frame step{zero, "ZeroRedundancyOptimizer.step", 1100};
  const Frame profile{kTorch + "optim/optimizer.py", "Optimizer.profile_hook_step.<locals>.wrapper", 140};
  EXPECT_EQ(text_of({broadcast, from_rank, step, profile, kStep}, "broadcast"), "train.py:212 in train_step -> ZeroRedundancyOptimizer.step");
  const Frame gather{kTorch + "distributed/fsdp/_fully_shard/_fsdp_collectives.py", "foreach_all_gather", 150};
  const Frame unshard{kTorch + "distributed/fsdp/_fully_shard/_fsdp_param_group.py", "FSDPParamGroup.unshard", 260};
  EXPECT_EQ(text_of({gather, unshard, kStep}, "all_gather"), "train.py:212 in train_step -> FSDPParamGroup.unshard");
  const Frame states{kTorch + "distributed/utils.py", "_sync_module_states", 200};
  const Frame init{kTorch + "nn/parallel/distributed.py", "DistributedDataParallel.__init__", 700};
  EXPECT_EQ(text_of({states, init, kStep}, "broadcast"), "train.py:212 in train_step -> DistributedDataParallel.__init__");
  // Sources without classes in their names.
  const Frame buffers{kTorch + "nn/parallel/distributed.py", "_sync_buffers", 1625};
  const Frame forward{kTorch + "nn/parallel/distributed.py", "forward", 1600};
  EXPECT_EQ(text_of({buffers, forward, kStep}, "broadcast"), "train.py:212 in train_step -> _sync_buffers");
}

TEST(TorchSite, TellsAComprehensionAsItsFunction) {
  const Frame comprehension{"/home/u/train.py", "Trainer.run.<locals>.<listcomp>", 48};
  EXPECT_EQ(text_of({kAllReduce, kStep, comprehension, kMain}, "all_reduce"), "train.py:212 in train_step < Trainer.run");
  EXPECT_EQ(text_of({kAllReduce, comprehension, kMain}, "all_reduce"), "train.py:48 in Trainer.run");
}

TEST(TorchSite, NamesTheFrameworkBetween) {
  const Frame norm{"/venv/lib/python3.11/site-packages/deepspeed/runtime/zero/stage_1_and_2.py",
                   "get_grad_norm_direct", 1663};
  EXPECT_EQ(text_of({kAllReduce, norm, kStep, kMain}, "all_reduce"),
            "train.py:212 in train_step -> get_grad_norm_direct (stage_1_and_2.py:1663)");
}

TEST(TorchSite, KeepsAllWhereNothingElseIsLeft) {
  const Frame bucket{"", "DistributedDataParallel bucket 1", 0};
  EXPECT_EQ(torch_site({bucket, kAllReduce}).frames, (std::vector<Frame>{bucket, kAllReduce}));
  EXPECT_EQ(torch_site({}).frames, std::vector<Frame>{});
}

TEST(TorchSite, LeavesOthersAlone) {
  const CallSite site = torch_site({kStep, kMain});
  EXPECT_EQ(site.frames, (std::vector<Frame>{kStep, kMain}));
  EXPECT_EQ(torch_site_text(site.frames, "all_reduce"), "");
  const Frame own{"/home/u/mytorch/nn/x.py", "f", 1};  // a folder that only ends like it
  EXPECT_EQ(torch_site({own, kMain}).frames.front(), own);
}

}  // namespace
}  // namespace lockstep
