// Fuzz target: any bytes as a JSONL call list.
#include "fuzz/fuzz_reader.h"
#include "read/jsonl_calls.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return lockstep::fuzz_reader(lockstep::read_jsonl_calls, data, size);
}
