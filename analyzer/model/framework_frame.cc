// See the header.
#include "model/framework_frame.h"

#include <string_view>

namespace lockstep {

bool is_framework(const Frame& frame) {
  const std::string_view file = frame.file;
  if (file.empty() || file.front() == '<') return true;
  for (const std::string_view part : {"/site-packages/", "/dist-packages/", "/lib/python3"}) {
    if (file.find(part) != std::string_view::npos) return true;
  }
  for (const std::string_view folder : {"torch/", "deepspeed/", "megatron/"}) {
    const std::size_t at = file.find(folder);
    if (at != std::string_view::npos && (at == 0 || file[at - 1] == '/')) return true;
  }
  return false;
}

}  // namespace lockstep
