// See the header.
#include "doctor/opened_libraries.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "base/mapped_file.h"
#include "doctor/elf_file.h"
#include "doctor/program_chain.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

bool names_nccl(std::string_view contents) { return contains(contents, "libnccl.so") || contains(contents, "librccl.so"); }

bool is_linked_with_nccl(std::string_view contents, std::string_view path) {
  const auto elf = read_elf(contents, path);
  if (!elf) return false;
  return elf->soname.starts_with("libnccl") || elf->soname.starts_with("librccl") ||
         std::ranges::any_of(elf->needed, [](const std::string& name) { return name.starts_with("libnccl") || name.starts_with("librccl"); });
}

/// Frameworks whose own communicator opens NCCL by ctypes.
bool is_known_to(std::string_view word) {
  constexpr std::string_view kNames[] = {"vllm", "sglang", "aphrodite"};
  const std::string name = fs::path(word).filename().string();
  return std::ranges::any_of(kNames, [&](std::string_view known) { return name == known || name.starts_with(std::string(known) + "."); });
}

}  // namespace

std::string opens_nccl_by_name(std::span<const std::string_view> command) {
  constexpr std::size_t kMostWords = 64;
  for (const std::string_view word : command.first(std::min(command.size(), kMostWords))) {
    if (word.empty() || word.starts_with('-')) continue;
    if (is_known_to(word)) return std::string(word);
    std::error_code error;
    const std::string path = fs::is_regular_file(word, error) ? std::string(word) : find_program(word);
    if (path.empty()) continue;
    const auto file = MappedFile::open(path);
    if (!file || !names_nccl(file->contents())) continue;
    if (!is_elf(file->contents()) || !is_linked_with_nccl(file->contents(), path)) return path;
  }
  return "";
}

bool has_nccl_inside(std::string_view contents) {
  return contains(contents, "NCCL_NET_GDR_LEVEL") && contains(contents, "NCCL_IB_GID_INDEX") && contains(contents, "NCCL_MAX_NCHANNELS");
}

}  // namespace lockstep
