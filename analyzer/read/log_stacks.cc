// See the header.
#include "read/log_stacks.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "model/framework_frame.h"
#include "read/log_line.h"

namespace lockstep {
namespace {

re2::StringPiece piece(std::string_view text) { return {text.data(), text.size()}; }

/// py-spy cuts the path of an installed package to this, faulthandler does not.
std::string_view from_package(std::string_view file) {
  for (const std::string_view folder : {"/site-packages/", "/dist-packages/"}) {
    if (const std::size_t at = file.rfind(folder); at != std::string_view::npos) return file.substr(at + folder.size());
  }
  return file;
}

bool is_in(const Frame& frame, std::string_view folder) { return from_package(frame.file).starts_with(folder); }

/// What passes a call on, wherever it is installed.
bool passes_on(const Frame& frame) {
  constexpr std::array<std::string_view, 8> kFiles{"contextlib.py", "functools.py", "threading.py", "runpy.py", "queue.py", "selectors.py", "_base.py", "thread.py"};
  const std::string_view file = std::string_view(frame.file).substr(frame.file.find_last_of('/') + 1);
  return std::ranges::find(kFiles, file) != kFiles.end() || frame.file.find("/lib/python3") != std::string::npos;
}

bool is_of_package(const Frame& frame) {
  constexpr std::array<std::string_view, 8> kPackages{"transformers/", "accelerate/", "lightning/", "pytorch_lightning/", "lightning_fabric/", "ray/", "horovod/", "trl/"};
  return std::ranges::any_of(kPackages, [&](std::string_view package) { return is_in(frame, package); });
}

bool is_of_transport(std::string_view function) {
  return function.starts_with("MPI") || function.starts_with("PMPI") || function.starts_with("ompi_") || function.starts_with("nccl") || function.starts_with("pnccl");
}

}  // namespace

std::optional<Frame> frame_of_line(std::string_view text) {
  static const RE2 kSpy(R"(^\s+([^\s()][^()]*) \(([^():]+\.\w+)(?::(\d{1,9}))?\)\s*$)");
  static const RE2 kFault(R"re(^\s*File "([^"]+)", line (\d{1,9}),? in ([^\s,]+))re");
  static const RE2 kGdb(R"((?:^|[\s:])#\d+ +(?:0x[0-9a-f]+ in )?([\w:~]+)(?:@\w+)? ?\(.*?(?:\) at ([^\s():]+):(\d{1,9})|$|\) from |\)))");
  Frame frame;
  re2::StringPiece line;
  if (RE2::PartialMatch(piece(text), kSpy, &frame.function, &frame.file, &line) || RE2::PartialMatch(piece(text), kFault, &frame.file, &line, &frame.function) ||
      RE2::PartialMatch(piece(text), kGdb, &frame.function, &frame.file, &line)) {
    std::from_chars(line.data(), line.data() + line.size(), frame.line);
    return frame;
  }
  return std::nullopt;
}

std::string frame_text(const Frame& frame) {
  if (frame.file.empty()) return frame.function;
  const std::string_view file = from_package(frame.file);
  return frame.line == 0 ? fmt::format("{} ({})", frame.function, file) : fmt::format("{} ({}:{})", frame.function, file, frame.line);
}

std::string user_frame_behind(std::string_view line, std::optional<std::int32_t> rank_of_line, std::string_view behind, std::size_t& budget) {
  // "line 40, in step" is of a traceback: the most recent call is the last.
  static const RE2 kTraceback(R"re(^\s*File "[^"]+", line \d+, in )re");
  static const RE2 kOther(R"(^(?:\S|\s*$))");
  static const RE2 kGdbFrame(R"(^(?:[Rr]ank \d+[\]:]* *)?#\d+ )");
  static const RE2 kOwnRank(R"(^\s*([Rr]ank \d+[\]:]))");
  if (RE2::PartialMatch(piece(line), kTraceback)) return {};
  const auto own_rank = [](std::string_view text) {
    re2::StringPiece rank;
    return RE2::PartialMatch(piece(text), kOwnRank, &rank) ? std::string(rank.data(), rank.size()) : std::string{};
  };
  const std::string own = own_rank(line);
  constexpr int kMostLines = 400;
  std::string buffer;
  std::optional<Frame> nearest;
  for (int n = 0; n < kMostLines && !behind.empty() && budget > 0; ++n, --budget) {
    const std::size_t end = std::min(behind.find('\n'), behind.size());
    const LogLine next = clean_log_line(behind.substr(0, end), buffer);
    behind.remove_prefix(std::min(end + 1, behind.size()));
    if (next.rank != rank_of_line || own_rank(next.text) != own) continue;
    const std::optional<Frame> frame = frame_of_line(next.text);
    if (!frame) {
      // A heading or an empty line ends the stack.
      if (RE2::PartialMatch(piece(next.text), kOther) && !RE2::PartialMatch(piece(next.text), kGdbFrame)) break;
      continue;
    }
    if (frame->line == 0 || passes_on(*frame) || is_in(*frame, "torch/") || is_of_transport(frame->function)) continue;
    if (!nearest) nearest = frame;
    if (is_framework(*frame) || is_of_package(*frame)) continue;
    nearest = frame;
    break;
  }
  if (!nearest) return {};
  const std::string place = fmt::format("{}:{}", nearest->file.substr(nearest->file.find_last_of('/') + 1), nearest->line);
  return nearest->function.front() == '<' ? place : fmt::format("{} in {}", place, nearest->function);
}

}  // namespace lockstep
