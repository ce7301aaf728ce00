// See the header.
#include "diagnose/site_words.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/framework_frame.h"
#include "model/via_frame.h"

namespace lockstep {
namespace {

std::string place(const Frame& frame) {
  const std::string_view file = std::string_view(frame.file).substr(frame.file.find_last_of('/') + 1);
  return frame.line == 0 ? std::string(file) : fmt::format("{}:{}", file, frame.line);
}

/// "send" says no more than isend, "all_gather_into_tensor" no more than all_gather. Without `op`: a function
/// of torch.distributed.
bool repeats(std::string_view via, std::string_view op) {
  if (via.starts_with('_')) via.remove_prefix(1);
  if (op.starts_with("is") || op.starts_with("ir")) op.remove_prefix(1);
  if (op.ends_with("_v")) op.remove_suffix(2);
  if (via.find("object") != std::string_view::npos) return false;
  return op.empty() ? via.find_first_of(" .") == std::string_view::npos : via.starts_with(op);
}

/// A comprehension or a lambda is told as the function that it stands in.
std::string_view function_of(const Frame& frame) {
  const std::string_view function = frame.function;
  return function.substr(0, function.find(".<locals>.<"));
}

bool is_named(const Frame& frame) { return !frame.function.empty() && frame.function.front() != '<'; }

/// `in_full`: with the user's caller, and the framework's function between.
std::string text_of(std::span<const Frame> frames, std::string_view op, bool in_full) {
  const std::string_view via = via_of(frames);
  if (via.empty()) return {};
  frames = frames.first(frames.size() - 1);
  if (frames.empty()) return std::string(via);
  auto user = std::ranges::find_if_not(frames, is_framework);
  if (user == frames.end()) user = frames.begin();
  std::string text = place(*user);
  if (is_named(*user)) text += fmt::format("{}in {}", text.empty() ? "" : " ", function_of(*user));
  const auto caller = user + 1;
  if (in_full && caller != frames.end() && !is_framework(*caller) && is_named(*user) && is_named(*caller))
    text += fmt::format(" < {}", function_of(*caller));
  if (user != frames.begin() && is_named(frames.front())) {
    text += fmt::format(" -> {}", frames.front().function);
    // A helper that only wraps the call says little.
    const Frame& caller_there = *(frames.begin() + 1);
    const bool has_caller = user - frames.begin() > 1 && is_named(caller_there);
    if (in_full && has_caller) text += fmt::format(" < {}", caller_there.function);
    if (in_full) text += fmt::format(" ({})", place(has_caller ? caller_there : frames.front()));
  }
  if (via != kViaTorch && !repeats(via, op)) text += fmt::format(" -> {}", via);
  return text;
}

}  // namespace

std::string torch_site_text(std::span<const Frame> frames, std::string_view op) {
  return text_of(frames, op, true);
}

std::string short_torch_site_text(std::span<const Frame> frames, std::string_view op) {
  return text_of(frames, op, false);
}

}  // namespace lockstep
