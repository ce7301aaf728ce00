// Fuzz target: any bytes as a Flight Recorder dump, pickle or JSON, alone and beside a whole dump of another rank.
#include <cstdint>
#include <string>

#include "base/mapped_file.h"
#include "fuzz/fuzz_reader.h"
#include "read/flight_dump.h"
#include "read/flight_recorder.h"

namespace {

using namespace lockstep;

void check(const Job& job) {
  for (const Program& program : job.programs()) {
    for (const Operation& operation : program.operations) {
      expect(operation.comm == kNoComm || to_size(operation.comm) < job.communicators().size(), "communicator index");
      expect(to_size(operation.site) < job.site_count(), "site index");
      expect(operation.peer >= kAnyPeer, "peer");
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string padded = std::string(data, data + size) + std::string(MappedFile::kPaddingBytes, '\0');
  const std::string_view bytes(padded.data(), size);
  static_cast<void>(looks_like_flight_pickle(bytes));
  static_cast<void>(looks_like_flight_json(bytes));
  for (const auto parse : {parse_flight_pickle, parse_flight_json}) {
    std::vector<std::unique_ptr<ParsedEvidence>> parsed;
    for (const char* name : {"dump_0", "dump_1"}) {
      auto dump = parse({.path = name, .contents = bytes});
      if (!dump) {
        expect(!dump.error().message.empty() && dump.error().message.find('\n') == std::string::npos, "error message");
        break;
      }
      parsed.push_back(*std::move(dump));
    }
    if (parsed.empty()) continue;
    JobIntake intake;
    static_cast<void>(join_flight_dumps(std::move(parsed), intake));
    check(std::move(intake).finish());
  }
  return 0;
}
