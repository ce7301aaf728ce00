// Buffers of a run over NCCL, filled so that every result can be foretold: each rank sends its number in the communicator plus one.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/op_kind.h"
#include "nccl/api.h"

namespace lockstep::testing {

struct DataCall {
  OpKind kind = OpKind::kUnknown;
  std::string_view type{};
  std::string_view redop{};
  std::uint64_t count = 0;
  int rank = 0;   ///< in the communicator
  int ranks = 1;
  int peer = -1;  ///< root or partner, in the communicator
};

/// NCCL's number of a type by its name in reports; -1: none. An empty name is f32, names that are no numbers are u8.
int nccl_datatype(std::string_view type);
int nccl_redop(std::string_view redop);

/// Memory of one call. Freed with the process: what is under way may use it.
class CallBuffers {
 public:
  CallBuffers(const DataCall& call, bool check);
  void* send() const { return send_; }
  void* receive() const { return receive_; }
  /// After the call is done: does the result hold what it must? True where it cannot be foretold.
  bool is_right() const;

 private:
  DataCall call_;
  bool check_ = false;
  void* send_ = nullptr;
  void* receive_ = nullptr;
};

}  // namespace lockstep::testing
