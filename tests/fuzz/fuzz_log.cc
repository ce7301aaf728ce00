// Fuzz target: any bytes as a job log, read and joined.
#include <algorithm>
#include <cstdint>
#include <string>

#include "base/mapped_file.h"
#include "fuzz/fuzz_reader.h"
#include "read/log_file.h"
#include "read/ras_json.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lockstep;
  const std::string padded = std::string(data, data + size) + std::string(MappedFile::kPaddingBytes, '\0');
  const std::string_view bytes(padded.data(), size);
  static_cast<void>(looks_like_log(bytes));
  std::vector<std::unique_ptr<ParsedEvidence>> parsed;
  if (looks_like_ras_json(bytes)) {
    if (auto answer = parse_ras_json({.path = "ras.json", .contents = bytes})) parsed.push_back(*std::move(answer));
  }
  auto log = parse_log({.path = "job.log", .contents = bytes});
  expect(log.has_value(), "a log is always read");
  parsed.push_back(*std::move(log));
  JobIntake intake;
  static_cast<void>(join_logs(std::move(parsed), intake));
  const ReportedEvidence reported = std::move(intake.reported());
  const auto lines = static_cast<std::size_t>(std::count(bytes.begin(), bytes.end(), '\n')) + 1;
  for (const ReportedEvent& event : reported.events) {
    expect(event.file < reported.files.size() && event.line <= lines, "place of an event");
    for (const std::int32_t rank : event.ranks) expect(rank >= 0, "rank");
  }
  const Job job = std::move(intake).finish();
  for (const Program& program : job.programs()) expect(program.rank >= 0, "rank of a program");
  return 0;
}
