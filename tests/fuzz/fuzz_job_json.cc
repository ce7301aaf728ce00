// Fuzz target: any bytes as Job JSON.
#include "fuzz/fuzz_reader.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return lockstep::fuzz_reader(lockstep::read_job_json, data, size);
}
