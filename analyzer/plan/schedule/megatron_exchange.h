// One rank's P2PCommunicator of Megatron-Core: turns "send this, receive that" into batches or single
// messages, in its order.
#pragma once

#include <cstdint>
#include <optional>

#include "plan/schedule/megatron.h"
#include "plan/schedule/timeline.h"

namespace lockstep::plan {

/// What one call of _communicate exchanges. Receives carry what the caller takes them for.
struct Exchange {
  std::optional<Payload> send_next{}, send_prev{}, recv_prev{}, recv_next{};
};

/// Requests that were not waited for; 0 = none.
struct Requests {
  std::uint32_t send_next = 0, recv_prev = 0, send_prev = 0, recv_next = 0;
};

class MegatronCommunicator {
 public:
  MegatronCommunicator(const MegatronQuery& query, std::int32_t rank, RankTimeline& out)
      : options_(query.options), ranks_(query.stages), rank_(rank), out_(out) {}

  bool is_first() const { return rank_ == 0; }
  bool is_last() const { return rank_ + 1 == ranks_; }

  /// `wait`: for all requests before it returns. Without it the requests come back (unbatched only).
  Requests communicate(const Exchange& exchange, bool wait = true);
  void wait_for(std::uint32_t request) {
    if (request != 0) out_.wait(request);
  }

 private:
  void exchange_shapes(const Exchange& exchange);
  void issue_batch(const Exchange& exchange);
  Requests issue_single(const Exchange& exchange, bool wait);
  Message to(bool next, const Payload& payload) const { return message(true, next, payload); }
  Message from(bool next, const Payload& payload) const { return message(false, next, payload); }
  Message message(bool send, bool next, const Payload& payload) const {
    return {.send = send, .peer = (rank_ + (next ? 1 : ranks_ - 1)) % ranks_, .payload = payload};
  }

  const MegatronOptions& options_;
  std::int32_t ranks_;
  std::int32_t rank_;
  RankTimeline& out_;
  std::uint32_t last_id_ = 0;
};

}  // namespace lockstep::plan
