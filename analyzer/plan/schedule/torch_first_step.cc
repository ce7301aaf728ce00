#include "plan/schedule/torch_first_step.h"

#include <algorithm>
#include <span>

#include "plan/versions.h"

namespace lockstep::plan {
namespace {

/// Steps of one rank ahead of those that it has.
class FirstSteps {
 public:
  FirstSteps(Timeline& timeline, const std::vector<std::int32_t>& stage_ranks, std::int32_t rank)
      : own_(timeline.ranks[static_cast<std::size_t>(rank)]), stage_ranks_(stage_ranks), rank_(rank) {
    for (const Step& step : own_.steps) id_ = std::max(id_, step.id);
    for (std::int32_t stage = 0; stage < std::ssize(stage_ranks); ++stage)
      if (rank_of(stage) == rank) stages_.push_back(stage);
  }

  /// Of this rank, in ascending order.
  const std::vector<std::int32_t>& stages() const { return stages_; }
  bool is_elsewhere(std::int32_t stage) const {
    return stage >= 0 && stage < std::ssize(stage_ranks_) && rank_of(stage) != rank_;
  }
  Message message(bool send, std::int32_t other, Carries carries) const {
    return {.send = send, .peer = rank_of(other), .payload = {carries, 0, 0}};
  }

  void batch(std::span<const Message> messages) {
    if (messages.empty()) return;
    before_.issue(StepKind::kBatch, ++id_, messages);
    before_.wait(id_);
  }
  /// send_object_list, recv_object_list.
  void shapes(bool send, std::int32_t other) {
    if (!is_elsewhere(other)) return;
    Message one = message(send, other, Carries::kShape);
    batch({&one, 1});  // the size of the object,
    one.payload.micro_batch = 1;
    batch({&one, 1});  // and its bytes
  }
  void vote(bool send, std::int32_t other) {
    if (!is_elsewhere(other)) return;
    const Message one = message(send, other, Carries::kToken);
    before_.issue(StepKind::kBlocking, ++id_, {&one, 1});
  }

  void prepend() {
    const auto shift = static_cast<std::uint32_t>(before_.messages.size());
    for (Step step : own_.steps) {
      step.first += shift;
      before_.steps.push_back(step);
    }
    before_.messages.insert(before_.messages.end(), own_.messages.begin(), own_.messages.end());
    own_ = std::move(before_);
  }

 private:
  std::int32_t rank_of(std::int32_t stage) const { return stage_ranks_[static_cast<std::size_t>(stage)]; }

  RankTimeline& own_;
  const std::vector<std::int32_t>& stage_ranks_;
  std::int32_t rank_;
  std::uint32_t id_ = 0;
  std::vector<std::int32_t> stages_;
  RankTimeline before_;
};

bool is_in(const std::vector<bool>& set, std::int32_t stage) {
  return static_cast<std::size_t>(stage) < set.size() && set[static_cast<std::size_t>(stage)];
}

}  // namespace

void prepend_torch_handshake(Timeline& timeline, const std::vector<std::int32_t>& stage_ranks,
                             const std::vector<bool>& knows_input) {
  for (std::int32_t rank = 0; rank < timeline.size(); ++rank) {
    FirstSteps first(timeline, stage_ranks, rank);
    std::vector<Message> ways;
    for (const std::int32_t stage : first.stages()) {
      const auto way = [&](bool send, std::int32_t other) {
        if (first.is_elsewhere(other)) ways.push_back(first.message(send, other, Carries::kToken));
      };
      way(false, stage - 1);
      way(true, stage + 1);
      way(true, stage - 1);
      way(false, stage + 1);
    }
    first.batch(ways);
    for (const std::int32_t stage : first.stages()) {
      if (is_in(knows_input, stage)) continue;
      first.shapes(false, stage - 1);
      first.shapes(true, stage + 1);
    }
    first.prepend();
  }
}

void prepend_torch_agreement(Timeline& timeline, const std::vector<std::int32_t>& stage_ranks,
                             const std::vector<bool>& knows_input, std::string_view version) {
  const bool all_know = std::ranges::count(knows_input, true) == std::ssize(stage_ranks);
  for (std::int32_t rank = 0; rank < timeline.size(); ++rank) {
    FirstSteps first(timeline, stage_ranks, rank);
    const auto there_and_back = [&](auto exchange) {
      for (const std::int32_t stage : first.stages()) {
        exchange(false, stage - 1);
        exchange(true, stage + 1);
      }
      for (auto stage = first.stages().rbegin(); stage != first.stages().rend(); ++stage) {
        exchange(false, *stage + 1);
        exchange(true, *stage - 1);
      }
    };
    if (!torch_names_waits(version)) there_and_back([&](bool send, std::int32_t other) { first.vote(send, other); });
    if (!all_know) there_and_back([&](bool send, std::int32_t other) { first.shapes(send, other); });
    first.prepend();
  }
}

void unbatch_one_way(Timeline& timeline) {
  for (RankTimeline& rank : timeline.ranks)
    for (Step& step : rank.steps) {
      const auto messages = rank.messages_of(step);
      const auto sends = std::ranges::count(messages, true, &Message::send);
      if (step.kind == StepKind::kBatch && (sends == 0 || sends == std::ssize(messages))) step.kind = StepKind::kAsync;
    }
}

}  // namespace lockstep::plan
