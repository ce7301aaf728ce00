// One row per format.
#include "read/formats.h"

#include "read/flight_dump.h"
#include "read/flight_recorder.h"
#include "read/job_json.h"
#include "read/jsonl_calls.h"
#include "read/log_file.h"
#include "read/pack_file.h"
#include "read/packed_traces.h"
#include "read/ras_json.h"
#include "read/trace_set.h"
#include "read/trace_tables.h"

namespace lockstep {
namespace {

constexpr EvidenceFormat kFormats[] = {
    {.name = "Lockstep trace", .looks_like = looks_like_trace, .read_together = read_traces},
    {.name = "Lockstep pack", .looks_like = looks_like_pack, .read_together = read_packs},
    {.name = "Flight Recorder dump (pickle)",
     .looks_like = looks_like_flight_pickle,
     .parse = parse_flight_pickle,
     .join = join_flight_dumps},
    {.name = "Flight Recorder dump (JSON)",
     .looks_like = looks_like_flight_json,
     .parse = parse_flight_json,
     .join = join_flight_dumps},
    {.name = "NCCL RAS answer (JSON)", .looks_like = looks_like_ras_json, .parse = parse_ras_json, .join = join_logs},
    {.name = "JSONL call list", .looks_like = looks_like_jsonl_calls, .read = read_jsonl_calls},
    {.name = "Job JSON", .looks_like = looks_like_job_json, .read = read_job_json},
    {.name = "job log", .looks_like = looks_like_log, .parse = parse_log, .parse_stream = parse_log_stream, .join = join_logs},
};

}  // namespace

std::span<const EvidenceFormat> evidence_formats() { return kFormats; }

const EvidenceFormat* find_format(std::string_view contents) {
  const std::string_view head = contents.substr(0, kHeadBytes);
  for (const EvidenceFormat& format : kFormats) {
    if (format.looks_like(head)) return &format;
  }
  return nullptr;
}

}  // namespace lockstep
