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

  bool is_message() const { return kind == OpKind::kSend || kind == OpKind::kRecv; }
};

}  // namespace lockstep::standin
