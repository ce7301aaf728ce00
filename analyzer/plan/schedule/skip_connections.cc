#include "plan/schedule/skip_connections.h"

#include <algorithm>
#include <map>

namespace lockstep::plan {
namespace {

class SkipWriter {
 public:
  SkipWriter(std::int32_t stage, std::span<const SkipConnection> skips, const RankTimeline& from)
      : stage_(stage), skips_(skips), from_(from) {
    for (const Step& step : from.steps) next_id_ = std::max(next_id_, step.id + 1);
  }

  RankTimeline write(bool batch_for_each_peer) {
    for (const Step& step : from_.steps) {
      if (step.kind == StepKind::kBatch)
        write_batch(step, batch_for_each_peer);
      else if (step.kind == StepKind::kWait)
        for (const std::uint32_t id : ids_of_[step.id]) out_.wait(id);
      else
        out_.steps.push_back(step);
    }
    return std::move(out_);
  }

 private:
  void write_batch(const Step& step, bool batch_for_each_peer) {
    std::map<std::int32_t, std::vector<Message>> batches;
    const auto add = [&](const Message& message) {
      batches[batch_for_each_peer ? message.peer : 0].push_back(message);
    };
    for (const Message& message : from_.messages_of(step)) {
      add(message);
      const bool forward = message.payload.carries == Carries::kActivation;
      if (!forward && message.payload.carries != Carries::kGradient) continue;
      // Activations leave from the front end of a connection and come to its far end; gradients the other way round.
      const bool at_front = forward == message.send;
      for (const SkipConnection& skip : skips_) {
        if ((at_front ? skip.from : skip.to) != stage_) continue;
        const std::int32_t other = at_front ? skip.to : skip.from;
        add({.send = message.send,
             .peer = other,
             .payload = {message.payload.carries, message.send ? stage_ : other, message.payload.micro_batch}});
      }
    }
    std::vector<std::uint32_t>& ids = ids_of_[step.id];
    ids.clear();
    for (const auto& [peer, messages] : batches) {
      ids.push_back(ids.empty() ? step.id : next_id_++);
      out_.issue(StepKind::kBatch, ids.back(), messages);
    }
  }

  std::int32_t stage_;
  std::span<const SkipConnection> skips_;
  const RankTimeline& from_;
  RankTimeline out_{};
  std::uint32_t next_id_ = 0;
  std::map<std::uint32_t, std::vector<std::uint32_t>> ids_of_{};  ///< by id of the batch before it was split
};

}  // namespace

std::vector<SkipConnection> skip_connections(const Plan& plan, const Parts& parts) {
  const auto stage_of_layer = [&](std::size_t layer) {
    return static_cast<std::int32_t>(std::ranges::upper_bound(parts, layer) - parts.begin()) - 1;
  };
  std::vector<SkipConnection> skips;
  for (std::size_t layer = 0; layer < plan.layers.size(); ++layer)
    for (const std::int64_t to : plan.layers[layer].skips_to) {
      const SkipConnection skip{stage_of_layer(layer), stage_of_layer(static_cast<std::size_t>(to))};
      if (skip.to > skip.from + 1) skips.push_back(skip);
    }
  return skips;
}

void add_skip_messages(Timeline& timeline, std::span<const SkipConnection> skips, bool batch_for_each_peer) {
  for (std::int32_t stage = 0; stage < timeline.size(); ++stage) {
    RankTimeline& own = timeline.ranks[static_cast<std::size_t>(stage)];
    const RankTimeline before = std::move(own);
    own = SkipWriter(stage, skips, before).write(batch_for_each_peer);
  }
}

}  // namespace lockstep::plan
