// The table of evidence formats that load_job() knows.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/byte_source.h"
#include "base/result.h"
#include "read/job_intake.h"

namespace lockstep {

/// What one file says by itself, for formats that are read file by file and joined when all are there.
struct ParsedEvidence {
  ParsedEvidence() = default;
  ParsedEvidence(const ParsedEvidence&) = delete;
  ParsedEvidence& operator=(const ParsedEvidence&) = delete;
  virtual ~ParsedEvidence() = default;
};

/// Told now and then while a long input is read: bytes taken from the file, and how many it has, 0 = not known. May come from any thread.
using ReadProgress = std::function<void(std::string_view path, std::uint64_t taken, std::uint64_t size)>;

/// How one kind of file is recognised and read.
struct EvidenceFormat {
  std::string_view name{};
  /// Whether a file with this beginning (up to kHeadBytes) is of the format. Must not be fooled by the other formats.
  bool (*looks_like)(std::string_view head) = nullptr;
  /// Adds what the file says; returns how many programs. An Error means that nothing of it could be used.
  Result<std::size_t> (*read)(const EvidenceFile& file, JobIntake& intake) = nullptr;
  /// Instead of `read`, for formats whose files mean something only beside each other: called once with all of them.
  /// By file: the Error where nothing of it could be used.
  std::vector<std::optional<Error>> (*read_together)(std::span<const EvidenceFile> files, JobIntake& intake) = nullptr;
  /// Or: the file is closed after `parse`, which may run in any thread, and `join` gets the results in the order of the paths. By
  /// result: the Error where it could not be used. Formats with the same `join` are joined together.
  Result<std::unique_ptr<ParsedEvidence>> (*parse)(const EvidenceFile& file) = nullptr;
  /// For formats that one pass can read, beside `parse`: bounded memory for an input of any length.
  Result<std::unique_ptr<ParsedEvidence>> (*parse_stream)(std::string_view path, ByteSource& source, const ReadProgress& progress) = nullptr;
  std::vector<std::optional<Error>> (*join)(std::vector<std::unique_ptr<ParsedEvidence>> parsed, JobIntake& intake) = nullptr;
};

inline constexpr std::size_t kHeadBytes = std::size_t{64} << 10;

/// In the order in which they are tried. A new format is a reader of its own and a row here.
std::span<const EvidenceFormat> evidence_formats();

/// The format of a file with this content; nullptr: none that is known.
const EvidenceFormat* find_format(std::string_view contents);

}  // namespace lockstep
