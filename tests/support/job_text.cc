// Writes Job JSON and hands it to the reader, so that the grammar is written down once.
#include "support/job_text.h"

#include <stdexcept>

#include "base/mapped_file.h"
#include "read/job_intake.h"
#include "read/job_json.h"

namespace lockstep::testing {
namespace {

std::string quote(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "\"";
}

/// Puts `open`, the items with commas between, and `close` together.
template <class Items, class Text>
std::string join(char open, const Items& items, char close, Text text) {
  std::string joined(1, open);
  for (const auto& item : items) joined += (joined.size() > 1 ? "," : "") + text(item);
  return joined + close;
}

}  // namespace

Job job_from_json(std::string_view json) {
  const std::string padded = std::string(json) + std::string(MappedFile::kPaddingBytes, '\0');
  JobIntake intake;
  const Result<std::size_t> read = read_job_json(
      {.path = "test.json", .contents = std::string_view(padded).substr(0, json.size())}, intake);
  if (!read) throw std::invalid_argument(read.error().message);
  Job job = std::move(intake).finish();
  if (!job.quality().warnings.empty()) throw std::invalid_argument(job.quality().warnings.front());
  return job;
}

Job make_job(const GroupList& groups, const std::vector<std::vector<std::string>>& lines,
             const std::map<std::int32_t, std::string>& ends, std::string_view library) {
  std::string json = "{\"schema\": \"lockstep-job/1\", \"groups\": ";
  json += join('{', groups, '}', [](const auto& group) {
    return quote(group.first) + ":" +
           join('[', group.second, ']', [](std::int32_t rank) { return std::to_string(rank); });
  });
  std::size_t rank = 0;
  json += ", \"ranks\": " + join('{', lines, '}', [&rank](const auto& calls) {
            return quote(std::to_string(rank++)) + ":" + join('[', calls, ']', quote);
          });
  json += ", \"ends\": " + join('{', ends, '}', [](const auto& end) {
            return quote(std::to_string(end.first)) + ":" + quote(end.second);
          });
  if (!library.empty()) json += ", \"library\": " + quote(library);
  return job_from_json(json + "}");
}

}  // namespace lockstep::testing
