// One fuzz input through one reader, as a file of that content would go.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/mapped_file.h"
#include "read/job_intake.h"
#include "read/job_json.h"
#include "read/job_json_writer.h"

namespace lockstep {

using Reader = Result<std::size_t> (*)(const EvidenceFile& file, JobIntake& intake);

/// The Job that `reader` makes of `text`, or of `text` twice under two names (every rank has two records then).
inline Result<Job> read_fuzz_input(Reader reader, std::string_view text, bool twice) {
  const std::string padded = std::string(text) + std::string(MappedFile::kPaddingBytes, '\0');
  JobIntake intake;
  for (const char* name : {"first", "second"}) {
    const Result<std::size_t> programs = reader({.path = name, .contents = {padded.data(), text.size()}}, intake);
    if (!programs) return programs.error();
    if (!twice) break;
  }
  return std::move(intake).finish();
}

inline void expect(bool holds, std::string_view what, std::string_view detail = "") {
  if (holds) return;
  std::fprintf(stderr, "broken: %.*s\n%.*s\n", static_cast<int>(what.size()), what.data(), static_cast<int>(detail.size()),
               detail.data());
  std::abort();
}

/// Indices point into the tables of the Job.
inline void check_fuzz_tables(const Job& job) {
  for (const Program& program : job.programs()) {
    for (const Operation& operation : program.operations) {
      expect(operation.comm == kNoComm || to_size(operation.comm) < job.communicators().size(), "communicator index");
      expect(to_size(operation.site) < job.site_count(), "site index");
      expect(operation.peer >= kAnyPeer, "peer");
      expect(operation.line > 0, "line");
      expect(!job.count_text(operation.count).empty() || operation.count.is_none(), "count");
    }
  }
}

/// What must hold for any Job that a reader made of text: it can be written and read again.
inline void check_fuzz_job(const Job& job) {
  check_fuzz_tables(job);
  const std::string text = to_job_json(job);
  if (text.find("\xef\xbf\xbd") != std::string::npos) return;  // not UTF-8: written with replacements
  const Result<Job> again = read_fuzz_input(read_job_json, text, false);
  expect(again.has_value(), "written text cannot be read", text);
  expect(to_job_json(*again) == text, "written text reads back to another Job", text + "----\n" + to_job_json(*again));
}

/// The whole of a fuzz target.
inline int fuzz_reader(Reader reader, const std::uint8_t* data, std::size_t size) {
  const std::string text(data, data + size);
  for (const bool twice : {false, true}) {
    const Result<Job> job = read_fuzz_input(reader, text, twice);
    if (job) check_fuzz_job(*job);
    if (!job) expect(!job.error().message.empty() && job.error().message.find('\n') == std::string::npos, "error message");
  }
  return 0;
}

}  // namespace lockstep
