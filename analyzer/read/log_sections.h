// What one line of a log says about the lines behind it: headings over stacks, torchelastic's summary, reports of RAS, of torch's
// desync debugging and of its analyzer of dumps, and JAX's barriers.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "model/reported.h"

namespace lockstep {

class LogSections {
 public:
  using Keep = std::function<void(ReportedEvent)>;

  /// True where the line was one of these and says nothing else.
  bool read(std::string_view text, std::uint32_t line, const Keep& keep);
  /// Completes an event of a line in a section: the rank of a stack under a heading, the communicator of a count of RAS.
  void complete(ReportedEvent& event) const;
  /// The rank that the lines before gave to this one.
  std::optional<std::int32_t> rank_of(std::uint32_t line) const;
  /// Where a rank runs, as the line tells (RAS, torchelastic); the rank is -1 where it does not.
  std::pair<std::int32_t, ReportedPlace> take_place();

 private:
  bool read_heading(std::string_view text);
  bool read_desync(std::string_view text, std::uint32_t line, const Keep& keep);
  bool read_elastic(std::string_view text, std::uint32_t line);
  bool read_dump_analysis(std::string_view text, std::uint32_t line, const Keep& keep);
  bool read_task_barrier(std::string_view text, std::uint32_t line, const Keep& keep);
  void read_ras(std::string_view text);

  std::optional<std::int32_t> section_rank_;
  std::int64_t desync_number_ = -1;
  std::uint32_t elastic_line_ = 0;
  std::int32_t elastic_rank_ = -1;
  std::string elastic_host_;
  std::uint32_t elastic_host_line_ = 0;
  std::string ras_communicator_, ras_op_;
  bool ras_dead_ = false, ras_silent_ = false;
  std::string barrier_, came_;
  std::uint32_t barrier_line_ = 0;
  std::string analysed_op_, analysed_group_;
  std::optional<std::int64_t> analysed_seq_;
  std::pair<std::int32_t, ReportedPlace> place_{-1, {}};
};

}  // namespace lockstep
