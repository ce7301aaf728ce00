#include "plan/schedule/torch_action.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <optional>

namespace lockstep::plan {
namespace {

constexpr std::array<std::string_view, 15> kLetters = {
    "", "F", "B", "I", "W", "UNSHARD", "RESHARD", "REDUCE_GRAD", "SEND_F", "RECV_F", "SEND_B", "RECV_B",
    "WAIT_REDUCE_GRAD", "WAIT_SEND_F", "WAIT_SEND_B"};

std::string leaf_text(const TorchLeaf& leaf) {
  std::string text = fmt::format("{}{}", leaf.stage, torch_act_letters(leaf.act));
  if (leaf.micro_batch >= 0) text += std::to_string(leaf.micro_batch);
  return text;
}

constexpr std::int32_t kMaxIndex = 65'535;  // of stages and micro-batches in a file

std::optional<std::int32_t> take_number(std::string_view& text) {
  std::int32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || value < 0 || value > kMaxIndex) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

std::string_view trim(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r";
  const std::size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

/// A cell as torch's csv.reader takes it: quotes around the whole are no part of it.
std::string_view cell_text(std::string_view text) {
  text = trim(text);
  if (text.size() >= 2 && text.starts_with('"') && text.ends_with('"')) return trim(text.substr(1, text.size() - 2));
  return text;
}

bool needs_micro_batch(TorchAct act) {
  return act != TorchAct::kUnshard && act != TorchAct::kReshard && act != TorchAct::kReduceGrad && act != TorchAct::kWaitReduceGrad;
}

std::optional<TorchLeaf> parse_leaf(std::string_view text, TorchLetters letters) {
  TorchLeaf leaf;
  const auto stage = take_number(text);
  if (!stage) return std::nullopt;
  leaf.stage = *stage;
  const std::size_t digits = text.find_first_of("0123456789");
  std::string_view word = text.substr(0, digits);
  if (letters == TorchLetters::kOld) word = word == "B" ? "I" : word == "BW" ? "B" : word;
  for (std::size_t i = 1; i < kLetters.size(); ++i) {
    if (word == kLetters[i]) leaf.act = static_cast<TorchAct>(i);
  }
  if (leaf.act == TorchAct::kBubble) return std::nullopt;
  if (digits == std::string_view::npos)
    return needs_micro_batch(leaf.act) ? std::nullopt : std::optional(leaf);
  text.remove_prefix(digits);
  const auto micro_batch = take_number(text);
  if (!micro_batch || !text.empty() || !needs_micro_batch(leaf.act)) return std::nullopt;
  leaf.micro_batch = *micro_batch;
  return leaf;
}

std::optional<TorchAction> parse_action(std::string_view text, TorchLetters letters) {
  text = trim(text);
  if (text.empty()) return TorchAction();
  if (!text.starts_with('(')) {
    const auto leaf = parse_leaf(text, letters);
    return leaf ? std::optional<TorchAction>(*leaf) : std::nullopt;
  }
  const std::size_t close = text.find(')');
  const std::size_t middle = text.find(';');
  if (close == std::string_view::npos || middle > close || text.substr(close + 1) != "OVERLAP_F_B")
    return std::nullopt;
  const auto first = parse_leaf(trim(text.substr(1, middle - 1)), letters);
  const auto second = parse_leaf(trim(text.substr(middle + 1, close - middle - 1)), letters);
  if (!first || !second) return std::nullopt;
  return TorchAction(*first, *second);
}

}  // namespace

std::string_view torch_act_letters(TorchAct act) { return kLetters[static_cast<std::size_t>(act)]; }

std::string torch_action_text(const TorchAction& action) {
  if (action.is_bubble()) return {};
  if (!action.is_overlap()) return leaf_text(action.first);
  return fmt::format("({};{})OVERLAP_F_B", leaf_text(action.first), leaf_text(action.second));
}

std::string torch_row_text(const TorchRow& row) {
  std::string text;
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (i != 0) text += ',';
    text += torch_action_text(row[i]);
  }
  return text;
}

Result<TorchOrder> parse_torch_csv(std::string_view csv, std::string_view path, TorchLetters letters) {
  TorchOrder order;
  std::size_t line_number = 0;
  while (!csv.empty()) {
    const std::size_t end = csv.find('\n');
    std::string_view line = csv.substr(0, end);
    csv.remove_prefix(end == std::string_view::npos ? csv.size() : end + 1);
    ++line_number;
    if (trim(line).empty()) continue;
    TorchRow& row = order.emplace_back();
    for (std::size_t cell = 1;; ++cell) {
      const std::size_t comma = line.find(',');
      const std::string_view text = cell_text(line.substr(0, comma));
      const auto action = parse_action(text, letters);
      if (!action) {
        return Error{
            ErrorCode::kMalformed,
            fmt::format(
                "{}:{}: cell {}: '{}' is no action; expected STAGE, then F, B, I, W, UNSHARD, RESHARD, "
                "REDUCE_GRAD, SEND_F, RECV_F, SEND_B or RECV_B, then MICRO-BATCH, as in 2F0",
                path, line_number, cell, text.substr(0, 80))};
      }
      row.push_back(*action);
      if (comma == std::string_view::npos) break;
      line.remove_prefix(comma + 1);
    }
  }
  if (order.empty())
    return Error{ErrorCode::kMalformed, fmt::format("{}: has no row; expected one for each rank", path)};
  return order;
}

}  // namespace lockstep::plan
