// One pass over the text of a log, in pieces: finds the lines that say something and keeps what they say, which is bounded.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "read/formats.h"
#include "read/log_calls.h"
#include "read/log_line.h"
#include "read/log_sections.h"

namespace lockstep {

struct ParsedLog final : ParsedEvidence {
  std::string path{};
  std::vector<ReportedEvent> events{};
  std::map<std::int32_t, ReportedPlace> places{};  ///< by rank
  std::size_t dropped = 0;
  std::vector<std::string> warnings{};  ///< about the input as a whole
  std::optional<StatedSize> size{};     ///< of the job; the largest that a line states
  LogCalls calls{};
};

class LogReader {
 public:
  /// `log.path` is set; the rank may stand in it.
  explicit LogReader(ParsedLog& log);

  /// Reads whole lines; returns how many bytes of `text` are done with. What is left is given again, with more behind it,
  /// unless `is_last`. Never returns 0 where `text` is 1 MiB or more.
  std::size_t feed(std::string_view text, bool is_last);

 private:
  struct Line {
    std::size_t begin = 0, end = 0;  ///< places in the text; `end` is that of its newline or of the text
    std::uint32_t joined = 0;        ///< further lines that were taken with it
  };
  static constexpr std::size_t kNeedsMore = static_cast<std::size_t>(-1);

  std::size_t read_missing_ranks(std::string_view text, std::size_t at);
  /// The line as one, where a viewer or a log collector has broken it: "... last enqueued" / "NCCL work: 7". kNeedsMore
  /// in `end`: more text is needed to tell.
  std::string_view whole_line(std::string_view text, bool is_last, Line& line);
  void read_line(std::string_view raw);
  void read_grammars(const LogLine& line, std::optional<std::int32_t> rank);
  void tell_stack(const LogLine& line, ReportedEvent& event);
  void note_place(const LogLine& line, std::int32_t rank);
  void note_size(std::string_view text);
  void keep(ReportedEvent event);

  ParsedLog& log_;
  LogSections sections_;
  std::string buffer_, joined_;
  std::size_t stack_lines_left_ = 2'000'000;  ///< that are looked at for callers: logs of nothing but frames take no longer than that
  std::string_view behind_;  ///< the text behind the line that is being read
  std::uint32_t line_ = 0;
  std::optional<std::int32_t> file_rank_;
  bool in_missing_ranks_ = false;
  ReportedEvent finished_{};  // its line is 0 where there is none
  std::map<std::pair<ReportedKind, std::int32_t>, std::size_t> counts_;
  std::map<std::int32_t, std::vector<std::size_t>> last_calls_;  // by rank: places in events
};

}  // namespace lockstep
