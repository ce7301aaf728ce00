// Opens and recognises plan files.
#include "cli/plan_file.h"

#include "base/mapped_file.h"
#include "plan/read_plan.h"

namespace lockstep {

Result<plan::Plan> load_plan(const std::string& path) {
  const auto file = MappedFile::open(path);
  if (!file) return file.error();
  return plan::read_plan(file->contents(), path);
}

bool looks_like_plan(std::string_view text) {
  constexpr std::size_t kLooked = 4096;
  const std::string_view head = text.substr(0, kLooked);
  const auto has = [head](std::string_view word) { return head.find(word) != std::string_view::npos; };
  return has("\"lockstep-plan/") ||
         (has("\"framework\"") && text.find("\"layers\"") != std::string_view::npos);
}

std::optional<plan::Iteration> iteration_from_name(std::string_view name) {
  for (const auto iteration : {plan::Iteration::kFirst, plan::Iteration::kSecond, plan::Iteration::kSteady,
                               plan::Iteration::kSkipped})
    if (iteration_name(iteration) == name) return iteration;
  return std::nullopt;
}

}  // namespace lockstep
