// Calls under way: each is moved on a step at a time, with the segment of its communicator locked, as far as the others let it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "nccl/call.h"

namespace lockstep::standin {

enum class Progress { kNone, kSome, kDone };

class Steps {
 public:
  virtual ~Steps() = default;
  /// The segment is locked, and may be unlocked and locked again inside.
  virtual Progress advance() = 0;
  virtual std::string describe() const = 0;
};

std::unique_ptr<Steps> collective_steps(const Call& call);
std::unique_ptr<Steps> message_steps(const Call& call);
std::unique_ptr<Steps> signal_steps(const Call& call);

}  // namespace lockstep::standin
