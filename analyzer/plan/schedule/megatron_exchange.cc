#include "plan/schedule/megatron_exchange.h"

#include <array>
#include <utility>

namespace lockstep::plan {

Requests MegatronCommunicator::communicate(const Exchange& exchange, bool wait) {
  if (options_.variable_seq_lengths || options_.mtp_standalone) exchange_shapes(exchange);
  Requests requests;
  if (options_.batch_p2p_comm) {
    issue_batch(exchange);
    if (options_.batch_p2p_sync) out_.mark(Mark::kDeviceSync);
  } else {
    requests = issue_single(exchange, wait);
  }
  return requests;
}

/// Always batched, and the device is synchronized even where there was nothing to exchange.
void MegatronCommunicator::exchange_shapes(const Exchange& exchange) {
  const auto shape_of = [](const std::optional<Payload>& payload) {
    return payload ? std::optional<Payload>({Carries::kShape, payload->chunk, payload->micro_batch})
                   : std::nullopt;
  };
  issue_batch({.send_next = shape_of(exchange.send_next),
               .send_prev = shape_of(exchange.send_prev),
               .recv_prev = shape_of(exchange.recv_prev),
               .recv_next = shape_of(exchange.recv_next)});
  out_.mark(Mark::kDeviceSync);
}

void MegatronCommunicator::issue_batch(const Exchange& exchange) {
  std::array<Message, 4> list;
  std::size_t count = 0;
  if (exchange.send_prev) list[count++] = to(false, *exchange.send_prev);
  if (exchange.recv_prev) list[count++] = from(false, *exchange.recv_prev);
  if (exchange.send_next) list[count++] = to(true, *exchange.send_next);
  if (exchange.recv_next) list[count++] = from(true, *exchange.recv_next);
  if (count == 0) return;
  out_.issue(StepKind::kBatch, ++last_id_, std::span(list).first(count));
  out_.wait(last_id_);
}

/// Even ranks send onwards first and odd ones receive first, so that blocking messages meet. Where the group
/// has two ranks, what goes the other way round uses the default group, for two streams.
Requests MegatronCommunicator::issue_single(const Exchange& exchange, bool wait) {
  const bool even = rank_ % 2 == 0;
  const bool two_groups = ranks_ == 2 && !options_.ucc;
  Requests requests;
  std::array<std::uint32_t, 4> issued{};
  std::size_t count = 0;
  const auto issue = [&](const std::optional<Payload>& payload, bool send, bool next,
                         std::uint32_t& request) {
    if (!payload) return;
    Message one = message(send, next, *payload);
    one.world = two_groups && send != even;
    request = ++last_id_;
    out_.issue(StepKind::kAsync, request, {&one, 1});
    issued[count++] = request;
  };
  if (even) {
    issue(exchange.send_next, true, true, requests.send_next);
    issue(exchange.recv_prev, false, false, requests.recv_prev);
    issue(exchange.send_prev, true, false, requests.send_prev);
    issue(exchange.recv_next, false, true, requests.recv_next);
  } else {
    issue(exchange.recv_prev, false, false, requests.recv_prev);
    issue(exchange.send_next, true, true, requests.send_next);
    issue(exchange.recv_next, false, true, requests.recv_next);
    issue(exchange.send_prev, true, false, requests.send_prev);
  }
  if (!wait) return requests;
  for (std::size_t i = 0; i < count; ++i) out_.wait(issued[i]);
  return {};
}

}  // namespace lockstep::plan
