// The actions of torch.distributed.pipelining's schedules and their CSV form: "2F0", "1UNSHARD",
// "(0F7;7B3)OVERLAP_F_B", one row a rank.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace lockstep::plan {

enum class TorchAct : std::uint8_t {
  kBubble,  ///< an empty cell
  kForward,
  kBackward,        ///< B: of input and weights
  kBackwardInput,   ///< I
  kBackwardWeight,  ///< W
  kUnshard,
  kReshard,
  kReduceGrad,
  kSendForward,
  kRecvForward,
  kSendBackward,
  kRecvBackward,
  kWaitReduceGrad,   ///< these three are named from torch 2.15 on
  kWaitSendForward,
  kWaitSendBackward,
};
std::string_view torch_act_letters(TorchAct act);

struct TorchLeaf {
  TorchAct act = TorchAct::kBubble;
  std::int32_t stage = 0;
  std::int32_t micro_batch = -1;  ///< -1: it has none
  friend bool operator==(const TorchLeaf&, const TorchLeaf&) = default;
};

/// One cell: an action, or two that run overlapped (OVERLAP_F_B).
struct TorchAction {
  TorchLeaf first{};
  TorchLeaf second{};  ///< kBubble where there is one action alone
  TorchAction() = default;
  TorchAction(TorchLeaf one) : first(one) {}  // NOLINT(google-explicit-constructor)
  TorchAction(TorchLeaf one, TorchLeaf two) : first(one), second(two) {}

  bool is_bubble() const { return first.act == TorchAct::kBubble; }
  bool is_overlap() const { return second.act != TorchAct::kBubble; }
  std::size_t leaf_count() const { return is_bubble() ? 0 : is_overlap() ? 2 : 1; }
  const TorchLeaf& leaf(std::size_t i) const { return i == 0 ? first : second; }
  friend bool operator==(const TorchAction&, const TorchAction&) = default;
};

using TorchRow = std::vector<TorchAction>;
using TorchOrder = std::vector<TorchRow>;  ///< by rank

std::string torch_action_text(const TorchAction& action);
std::string torch_row_text(const TorchRow& row);  ///< as _dump_csv writes it

/// Letters of 2025 and later, or those of the first releases: B was the input's gradient alone and BW the
/// full one.
enum class TorchLetters : std::uint8_t { kNew, kOld };

/// `path` is for messages, which name row and cell, both from 1. Blank lines are skipped.
Result<TorchOrder> parse_torch_csv(std::string_view csv, std::string_view path, TorchLetters letters);

}  // namespace lockstep::plan
