// What reader tests share: reading texts as if they were files, and files that live as long as a test.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/mapped_file.h"
#include "read/formats.h"

namespace lockstep {

/// Name and content of files that exist in a test only.
using TextFiles = std::vector<std::pair<std::string, std::string>>;

/// Reads `files` in this order, each by the format that it is recognised as.
inline Result<Job> read_texts(const TextFiles& files) {
  JobIntake intake;
  for (const auto& [name, text] : files) {
    const std::string padded = text + std::string(MappedFile::kPaddingBytes, '\0');
    const std::string_view contents(padded.data(), text.size());
    const EvidenceFormat* format = find_format(contents);
    if (format == nullptr) return Error{ErrorCode::kUnreadable, name + ": not recognised"};
    const Result<std::size_t> programs = format->read({.path = name, .contents = contents}, intake);
    if (!programs) return programs.error();
  }
  return std::move(intake).finish();
}
inline Result<Job> read_text(const std::string& text) { return read_texts({{"in", text}}); }

/// The operations of a rank; the test fails where it has no program.
inline const Program& program_of(const Job& job, std::int32_t rank) {
  static const Program none;
  const ProgramIndex index = job.program_of_rank(rank);
  EXPECT_NE(index, kNoProgram) << "rank " << rank;
  return index == kNoProgram ? none : job.program(index);
}

inline bool has_warning(const Job& job, std::string_view part) {
  for (const std::string& warning : job.quality().warnings) {
    if (warning.find(part) != std::string::npos) return true;
  }
  return false;
}
inline std::string all_warnings(const Job& job) {
  std::string all;
  for (const std::string& warning : job.quality().warnings) all += warning + "\n";
  return all;
}

/// A directory that is gone after the test.
class TempDir {
 public:
  TempDir() {
    std::string pattern = (std::filesystem::temp_directory_path() / "lockstep-test-XXXXXX").string();
    path_ = ::mkdtemp(pattern.data()) == nullptr ? "." : pattern;
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  ~TempDir() {
    std::error_code ignored;
    if (path_ != ".") std::filesystem::remove_all(path_, ignored);
  }
  std::string path() const { return path_; }
  std::string write(const std::string& name, std::string_view content) const {
    const std::string path = path_ + "/" + name;
    std::ofstream(path, std::ios::binary).write(content.data(), static_cast<std::streamsize>(content.size()));
    return path;
  }

 private:
  std::string path_;
};

/// Where the shared inputs are; empty where they are not.
inline std::string shared_directory() {
  const char* named = std::getenv("LOCKSTEP_SHARED");
  const std::string path = named != nullptr ? named : LOCKSTEP_SHARED_DEFAULT;
  return std::filesystem::is_directory(path) ? path : "";
}

}  // namespace lockstep
