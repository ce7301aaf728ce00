// See the header.
#include "read/open_input.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>
#include <utility>

#include "read/foreign_file.h"

namespace lockstep {
namespace {

/// What is unpacked may be a bomb: less of it is held than of a pipe.
constexpr std::size_t kMostUnpackedBytes = std::size_t{1} << 30;

Result<MappedFile> hold(const std::string& path, ByteSource& source) {
  constexpr std::size_t kLeastRoom = std::size_t{64} << 10;
  const std::size_t most = source.compression().empty() ? MappedFile::kMaxPipeBytes : kMostUnpackedBytes;
  std::string contents(kLeastRoom, '\0');
  std::size_t size = 0;
  while (true) {
    const Result<std::size_t> got = source.read(contents.data() + size, contents.size() - size);
    if (!got) return got.error();
    if (*got == 0) break;
    size += *got;
    if (size > most) {
      return Error{ErrorCode::kUnsupported,
                   source.compression().empty() ? fmt::format("{}: gave more than {} bytes through a pipe; pass it as a file", path, most)
                                                : fmt::format("{}: unpacks to more than {} bytes; unpack it first", path, most)};
    }
    if (contents.size() - size < kLeastRoom) contents.resize(contents.size() * 2);
  }
  contents.resize(size);
  return MappedFile::of(std::move(contents));
}

/// "FILE=RANK" stands for FILE, unless there is a file of that name. The rank is read from the name, as ranks in names are.
std::string file_of(const std::string& path) {
  const std::size_t equals = path.find_last_of('=');
  if (equals == std::string::npos || equals + 1 == path.size() || path.find_first_not_of("0123456789", equals + 1) != std::string::npos) return path;
  std::error_code ignored;
  const std::string file = path.substr(0, equals);
  return !std::filesystem::exists(path, ignored) && std::filesystem::exists(file, ignored) ? file : path;
}

}  // namespace

Result<OpenedInput> open_input(const std::string& path, const ReadProgress& progress) {
  const std::string file = file_of(path);
  Result<std::unique_ptr<ByteSource>> source = ByteSource::open(file);
  if (!source) return source.error();
  const Result<std::string_view> head = (*source)->peek(kHeadBytes);
  if (!head) return head.error();
  OpenedInput opened;
  std::string padded(*head);
  padded.resize(padded.size() + MappedFile::kPaddingBytes);
  const std::string_view known = std::string_view(padded).substr(0, head->size());
  opened.format = find_format(known);
  if (opened.format == nullptr) {
    const std::string_view packed = (*source)->compression();
    return Error{ErrorCode::kUnreadable, fmt::format("{}: {}{}{}", path, packed, packed.empty() ? "" : " of ", what_it_looks_like(known))};
  }
  if (opened.format->parse_stream != nullptr) {
    auto parsed = opened.format->parse_stream(path, **source, progress);
    if (!parsed) return parsed.error();
    opened.parsed = *std::move(parsed);
    return opened;
  }
  Result<MappedFile> mapped = (*source)->is_plain_file() ? MappedFile::open(file) : hold(path, **source);
  if (!mapped) return mapped.error();
  // Heads of JSON may need more than a head to be told apart.
  opened.format = find_format(mapped->contents());
  opened.file.emplace(*std::move(mapped));
  return opened;
}

}  // namespace lockstep
