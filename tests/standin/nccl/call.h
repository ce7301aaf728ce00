// A call that communicates, as it waits to be issued.
#pragma once

#include <cstdint>
#include <vector>

#include "lockstep/op_kind.h"
#include "nccl/communicator.h"

namespace lockstep::standin {

struct Call {
  OpKind kind = OpKind::kUnknown;
  const void* send = nullptr;
  void* receive = nullptr;
  std::uint64_t count = 0;
  int datatype = 0;
  int redop = 0;
  int peer = -1;  ///< root, or the other side of a message
  std::vector<char> scalar{};  ///< to multiply with before the sum; empty: none
  ncclComm* comm = nullptr;
  CUstream_st* stream = nullptr;

  // Put and signals. What is put is `count` bytes.
  std::uint64_t window = 0;  ///< of the communicator, in the order of registration
  std::uint64_t offset = 0;
  std::vector<nccl::ncclWaitSignalDesc_t> waits{};

  bool is_signal() const { return kind == OpKind::kPutSignal || kind == OpKind::kSignal || kind == OpKind::kWaitSignal; }
  bool is_message() const { return kind == OpKind::kSend || kind == OpKind::kRecv; }
};

}  // namespace lockstep::standin
