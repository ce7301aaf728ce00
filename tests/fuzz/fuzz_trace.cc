// Fuzz target: any bytes as a recorded trace, alone and beside itself.
#include <string>
#include <vector>

#include "fuzz/fuzz_reader.h"
#include "read/trace_set.h"

namespace lockstep {
namespace {

Result<std::size_t> read_one(const EvidenceFile& file, JobIntake& intake) {
  intake.set_native_lookup(false);
  const std::vector<std::optional<Error>> errors = read_traces({&file, 1}, intake);
  if (errors.front()) return *errors.front();
  return std::size_t{1};
}

}  // namespace
}  // namespace lockstep

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lockstep;
  const std::string text(data, data + size);
  for (const bool twice : {false, true}) {
    const Result<Job> job = read_fuzz_input(read_one, text, twice);
    if (job) check_fuzz_tables(*job);
    if (!job) expect(!job.error().message.empty() && job.error().message.find('\n') == std::string::npos, "error message");
  }
  return 0;
}
