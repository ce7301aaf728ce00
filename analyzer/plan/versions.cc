// Release numbers and the behaviour that came with them.
#include "plan/versions.h"

#include <array>
#include <charconv>
#include <optional>

namespace lockstep::plan {
namespace {

using Release = std::array<int, 3>;

std::optional<Release> parse_release(std::string_view text) {
  Release release{};
  for (std::size_t i = 0; i < release.size(); ++i) {
    const auto done = std::from_chars(text.data(), text.data() + text.size(), release[i]);
    if (done.ec != std::errc{} || release[i] < 0) return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(done.ptr - text.data()));
    if (text.empty() || text[0] != '.') return i == 0 ? std::nullopt : std::optional(release);
    text.remove_prefix(1);
  }
  return release;
}

struct Checked {
  std::string_view framework;
  Release newest;
  std::string_view note;
};
constexpr Checked kChecked[] = {
    {"deepspeed", {0, 16, 4}, "the rules for DeepSpeed were checked up to 0.16.4 (38327e07)"},
    {"megatron",
     {0, 17, 0},
     "the rules for Megatron-Core were checked up to its state of August 2026 (d98e8a64)"},
    {"torch", {2, 99, 0}, "the rules for torch were checked up to its state of August 2026"},
};

}  // namespace

DeepSpeedBehaviour deepspeed_behaviour(std::string_view version) {
  const auto release = parse_release(version);
  if (!release) return {};
  DeepSpeedBehaviour behaviour;
  behaviour.dynamic_partition = *release >= Release{0, 12, 5};
  behaviour.new_schedule = *release >= Release{0, 8, 3};
  behaviour.skips_lone_model_group = *release >= Release{0, 7, 5};
  behaviour.skips_lone_allgather = *release >= Release{0, 10, 2};
  behaviour.one_meta_message = *release >= Release{0, 15, 0};
  return behaviour;
}

bool torch_names_waits(std::string_view version) {
  const auto release = parse_release(version);
  return release && *release >= Release{2, 15, 0};
}

bool torch_refuses_few_micro_batches(std::string_view version, bool is_1f1b) {
  const auto release = parse_release(version);
  if (!release) return is_1f1b;
  return *release >= Release{2, 7, 0} && (is_1f1b || *release < Release{2, 11, 0});
}

bool torch_agrees_on_shapes(std::string_view version) {
  const auto release = parse_release(version);
  return release && *release >= Release{2, 12, 0};
}

bool torch_sorts_mesh_groups(std::string_view version) {
  const auto release = parse_release(version);
  return release && *release >= Release{2, 10, 0};
}

bool torch_caps_first_bucket(std::string_view version) {
  const auto release = parse_release(version);
  return !release || *release >= Release{2, 5, 0};
}

std::string_view unchecked_version_note(std::string_view framework, std::string_view version) {
  for (const Checked& checked : kChecked) {
    if (checked.framework != framework) continue;
    const auto release = parse_release(version);
    return release && *release <= checked.newest ? std::string_view{} : checked.note;
  }
  return {};
}

}  // namespace lockstep::plan
