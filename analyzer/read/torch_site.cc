// See the header.
#include "read/torch_site.h"

#include <algorithm>
#include <span>
#include <string_view>
#include <utility>

#include "model/via_frame.h"

namespace lockstep {
namespace {

/// Of the package, or of its C++: a project may have a folder of that name, so the package's own layout is
/// asked for.
bool is_torch(const Frame& frame) {
  if (frame.file.empty()) return true;
  const std::string_view file = frame.file;
  for (const std::string_view packages : {"/site-packages/torch/", "/dist-packages/torch/"}) {
    if (file.find(packages) != std::string_view::npos) return true;
  }
  for (const std::string_view inner :
       {"torch/distributed/", "torch/nn/", "torch/autograd/", "torch/_tensor.py", "torch/utils/",
        "torch/_ops.py", "deepspeed/comm/"}) {
    const std::size_t at = file.find(inner);
    if (at != std::string_view::npos && (at == 0 || file[at - 1] == '/')) return true;
  }
  return false;
}

/// The functions of torch.distributed, and what wraps them, DeepSpeed's copy of them included: they only pass
/// a call on.
bool passes_on(const Frame& frame) {
  if (frame.file.find("deepspeed/comm/") != std::string::npos) return true;
  for (const std::string_view file :
       {"torch/distributed/distributed_c10d.py", "torch/distributed/c10d_logger.py",
        "torch/distributed/_functional_collectives.py", "torch/_ops.py", "torch/utils/_contextlib.py"}) {
    if (std::string_view(frame.file).ends_with(file)) return true;
  }
  return false;
}

bool is_wrapper(const Frame& frame) {
  return frame.file.ends_with("c10d_logger.py") || frame.file.ends_with("_contextlib.py") ||
         frame.function.ends_with("wrapper");
}

std::string_view last_component(std::string_view path, char separator) { return path.substr(path.find_last_of(separator) + 1); }

bool is_private(const Frame& frame) {
  return frame.function.starts_with('_') || last_component(frame.function, '.').starts_with('_') || last_component(frame.file, '/').starts_with('_');
}

/// "ZeroRedundancyOptimizer.step", the constructor too. A name without its class (sources that have no other) tells too little.
bool is_public_method(const Frame& frame) {
  const std::string_view function = frame.function;
  const std::string_view name = last_component(function, '.');
  return name.size() != function.size() && !function.starts_with('_') && function.find('<') == std::string_view::npos &&
         (!name.starts_with('_') || name == "__init__");
}

/// The innermost function beyond those that only pass on; where that is private, the method that programs call to come there.
std::string via_text(const std::vector<Frame>& frames, std::size_t inner) {
  if (inner == 0) return {};
  if (frames.front().file.empty()) return frames.front().function;
  std::string entry;  // the function that was called from outside
  std::size_t i = 0;
  for (; i < inner && passes_on(frames[i]); ++i) {
    if (!is_wrapper(frames[i])) entry = frames[i].function;
  }
  if (i == inner) return entry;
  const std::span beyond = std::span(frames).first(inner).subspan(i);
  if (!is_private(beyond.front())) return beyond.front().function;
  const auto called = std::ranges::find_if(beyond, is_public_method);
  return called != beyond.end() ? called->function : beyond.front().function;
}

}  // namespace

CallSite torch_site(std::vector<Frame> frames) {
  const auto outer = std::ranges::find_if_not(frames, is_torch);
  if (outer == frames.end()) return {.frames = std::move(frames)};
  const std::string via = via_text(frames, static_cast<std::size_t>(outer - frames.begin()));
  CallSite site{{std::make_move_iterator(outer), std::make_move_iterator(frames.end())}};
  if (!via.empty()) site.frames.push_back(via_frame(via));
  return site;
}

}  // namespace lockstep
