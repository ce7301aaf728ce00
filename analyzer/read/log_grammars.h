// The table of lines that frameworks, libraries and kernels print around a hang: one row each, by family.
#pragma once

#include <re2/re2.h>

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/reported.h"

namespace lockstep {

/// The named parts of a matched line.
class LogFields {
 public:
  LogFields(const std::map<std::string, int>& names, std::span<const re2::StringPiece> groups) : names_(names), groups_(groups) {}
  std::string text(const char* name) const;
  std::optional<std::int64_t> number(const char* name) const;
  std::optional<std::int32_t> rank(const char* name) const;
  std::vector<std::int32_t> ranks(const char* name) const;  ///< "4, 5, 6", "4-6", "0 and 4"
  std::string_view whole() const { return {groups_[0].data(), groups_[0].size()}; }

 private:
  const re2::StringPiece* find(const char* name) const;
  const std::map<std::string, int>& names_;
  std::span<const re2::StringPiece> groups_;
};

/// Ranks in words: "4, 5, 6", "4-6", "0 and 4"; sorted, each once, and not more than a job may have.
std::vector<std::int32_t> ranks_in(std::string_view text);

struct LogGrammar {
  const char* family;
  const char* pattern;  ///< RE2, not anchored, with named groups
  /// Fills the event of the line; false: not this after all.
  bool (*fill)(const LogFields& fields, ReportedEvent& event);
  bool again = false;   ///< may occur several times in one line
};

/// In the order in which they are tried; the first that fits takes the line.
std::span<const LogGrammar> log_grammars();

/// Matches wherever a line of the table may stand: for passing over all other text quickly.
const RE2& log_trigger();

}  // namespace lockstep
