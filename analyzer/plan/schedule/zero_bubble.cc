#include "plan/schedule/zero_bubble.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "plan/schedule/zb_parts.h"

namespace lockstep::plan {
namespace {

ZbOrder one_forward_one_backward(const ZeroBubbleQuery& query) {
  ZbOrder order;
  for (std::int32_t s = 0; s < query.stages; ++s) {
    auto& row = order.emplace_back();
    const auto add = [&](ZbType type, std::int32_t m) {
      row.push_back(zb_compute(type, query.stages, s, 0, m, false));
    };
    const std::int32_t warmup = std::min(query.stages - s - 1, query.micro_batches);
    for (std::int32_t m = 0; m < warmup; ++m) add(ZbType::kF, m);
    for (std::int32_t m = 0; m < query.micro_batches; ++m) {
      if (m + warmup < query.micro_batches) add(ZbType::kF, m + warmup);
      add(ZbType::kBW, m);
    }
  }
  return order;
}

/// Interleaved 1F1B in groups of as many micro-batches as stages.
Result<ZbOrder> interleaved(const ZeroBubbleQuery& query) {
  const std::int32_t p = query.stages;
  if (query.micro_batches == 1 && query.chunks != 2) return zb_assertion("one micro-batch is for two chunks");
  if (query.micro_batches != 1 && query.micro_batches % p != 0) {
    return Error{ErrorCode::kUnsupported, fmt::format("RuntimeError: number of microbatches ({}) is not "
                                                      "divisible by pipeline-model-parallel-size ({}) when "
                                                      "using interleaved schedule",
                                                      query.micro_batches, p)};
  }
  const std::int32_t total = query.micro_batches * query.chunks;
  // One micro-batch alone goes through its chunks and back.
  const std::int32_t group = query.micro_batches == 1 ? 1 : p;
  ZbOrder order;
  for (std::int32_t s = 0; s < p; ++s) {
    auto& row = order.emplace_back();
    const auto add = [&](ZbType type, std::int32_t k) {
      const std::int32_t turn = k % (group * query.chunks) / group;
      const std::int32_t chunk = type == ZbType::kF ? turn : query.chunks - 1 - turn;
      row.push_back(zb_compute(type, p, s, chunk, k / (group * query.chunks) * group + k % group, false));
    };
    const std::int32_t ahead = query.micro_batches == 1 ? total : (p - s - 1) * 2 + (query.chunks - 1) * p;
    const std::int32_t warmup = std::min(ahead, total);
    for (std::int32_t k = 0; k < warmup; ++k) add(ZbType::kF, k);
    for (std::int32_t k = 0; k < total; ++k) {
      if (k + warmup < total) add(ZbType::kF, k + warmup);
      add(ZbType::kBW, k);
    }
  }
  return order;
}

std::string_view type_name(ZbType type) {
  constexpr std::array<std::string_view, 11> kNames = {"F",
                                                       "B",
                                                       "W",
                                                       "BW",
                                                       "SEND_FORWARD",
                                                       "RECV_FORWARD",
                                                       "SEND_BACKWARD",
                                                       "RECV_BACKWARD",
                                                       "POST_VALIDATION",
                                                       "SEND_POST_VALIDATION",
                                                       "RECV_POST_VALIDATION"};
  return kNames[static_cast<std::size_t>(type)];
}

bool is_zb_send(ZbType type) {
  return type == ZbType::kSendForward || type == ZbType::kSendBackward || type == ZbType::kSendPostValidation;
}
bool is_zb_receive(ZbType type) {
  return type == ZbType::kRecvForward || type == ZbType::kRecvBackward || type == ZbType::kRecvPostValidation;
}

Message message_of(const ZbNode& node) {
  Message message{.send = is_zb_send(node.type), .peer = node.peer};
  switch (node.type) {
    case ZbType::kSendForward:
      message.payload = {Carries::kActivation, node.layer, node.micro_batch};
      break;
    case ZbType::kRecvForward:
      message.payload = {Carries::kActivation, node.layer - 1, node.micro_batch};
      break;
    case ZbType::kSendBackward:
      message.payload = {Carries::kGradient, node.layer, node.micro_batch};
      break;
    case ZbType::kRecvBackward:
      message.payload = {Carries::kGradient, node.layer + 1, node.micro_batch};
      break;
    default:
      message.payload = {Carries::kToken, 0, 0};
      break;
  }
  return message;
}

/// send_prev, recv_prev, send_next, recv_next.
int fused_place(const ZbNode& node) { return (node.to_next ? 2 : 0) + (is_zb_receive(node.type) ? 1 : 0); }

}  // namespace

std::int32_t chunks_of(ZeroBubbleSchedule schedule) {
  switch (schedule) {
    case ZeroBubbleSchedule::k1F1B:
    case ZeroBubbleSchedule::kZb:
      return 1;
    case ZeroBubbleSchedule::kVpp:
      return 0;
    case ZeroBubbleSchedule::kZbv:
    case ZeroBubbleSchedule::kZbvGreedyMin:
    case ZeroBubbleSchedule::kZbvGreedyHalf:
    case ZeroBubbleSchedule::kV1F1B:
      return 2;
  }
  return 0;
}

ZbNode zb_compute(ZbType type, std::int32_t stages, std::int32_t stage, std::int32_t chunk,
                  std::int32_t micro_batch, bool vee) {
  const Placement placement = vee ? Placement::kVee : Placement::kLoop;
  return {.type = type,
          .stage = stage,
          .chunk = chunk,
          .micro_batch = micro_batch,
          .layer = stage_of(placement, stages, stage, chunk)};
}

Result<ZbOrder> zero_bubble_order(const ZeroBubbleQuery& query) {
  switch (query.schedule) {
    case ZeroBubbleSchedule::k1F1B:
      return one_forward_one_backward(query);
    case ZeroBubbleSchedule::kZb:
      return zb_heuristic_order(query);
    case ZeroBubbleSchedule::kVpp:
      return interleaved(query);
    case ZeroBubbleSchedule::kZbv:
      return zbv_order(query);
    case ZeroBubbleSchedule::kZbvGreedyMin:
      return zbv_greedy_order(query, false);
    case ZeroBubbleSchedule::kZbvGreedyHalf:
      return zbv_greedy_order(query, true);
    case ZeroBubbleSchedule::kV1F1B:
      return v1f1b_order(query);
  }
  return zb_assertion("schedule");
}

std::string zb_row_text(const std::vector<ZbNode>& row) {
  std::string text;
  for (const ZbNode& node : row) {
    if (!text.empty()) text += ' ';
    text += fmt::format("{}{}.{}", type_name(node.type), node.chunk, node.micro_batch);
    if (is_zb_send(node.type)) text += fmt::format(">{}#{}", node.peer, node.pair);
    if (is_zb_receive(node.type)) text += fmt::format("<{}#{}", node.peer, node.pair);
    if (node.rollback) text += "!rb";
  }
  return text;
}

Timeline zero_bubble_timeline(const ZbOrder& with_messages) {
  Timeline timeline;
  timeline.placement = Placement::kExplicit;
  for (const std::vector<ZbNode>& row : with_messages) {
    RankTimeline& out = timeline.ranks.emplace_back();
    std::uint32_t last_id = 0;
    std::vector<ZbNode> pending;
    const auto flush = [&] {
      if (pending.empty()) return;
      std::ranges::stable_sort(pending, {}, fused_place);
      std::vector<Message> messages;
      for (const ZbNode& node : pending) messages.push_back(message_of(node));
      out.issue(StepKind::kBatch, ++last_id, messages);
      out.wait(last_id);
      pending.clear();
    };
    for (const ZbNode& node : row) {
      if (is_zb_send(node.type) || is_zb_receive(node.type)) {
        pending.push_back(node);
        continue;
      }
      flush();
      if (node.type == ZbType::kPostValidation) {
        out.mark(Mark::kPostValidation);
        continue;
      }
      constexpr std::array<StepKind, 4> kKinds = {StepKind::kForward, StepKind::kBackwardInput,
                                                  StepKind::kBackwardWeight, StepKind::kBackward};
      out.compute(kKinds[static_cast<std::size_t>(node.type)], node.layer, node.micro_batch);
    }
    flush();
  }
  return timeline;
}

}  // namespace lockstep::plan
