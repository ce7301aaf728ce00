// From the sketch to a Job and to Job JSON; see the header.
#include "support/sketch.h"

#include <algorithm>
#include <cctype>

#include "model/job_builder.h"

namespace lockstep::testing {
namespace {

bool is_number(const std::string& text) {
  return !text.empty() && std::ranges::all_of(text, [](unsigned char c) { return std::isdigit(c) != 0; });
}

Operation build_operation(JobBuilder& builder, const std::vector<CommIndex>& comms, const SketchOp& op) {
  Operation out;
  out.kind = op.kind;
  if (op.comm >= 0) out.comm = comms[static_cast<std::size_t>(op.comm)];
  out.peer = op.peer;
  out.tag = op.tag;
  out.launch = op.launch;
  out.state = op.state;
  if (is_number(op.count)) {
    out.count = Count::of(std::stoull(op.count));
  } else if (!op.count.empty()) {
    out.count = Count::symbol(builder.intern(op.count));
  }
  out.datatype = builder.datatype(op.datatype);
  out.redop = builder.redop(op.redop);
  out.payload = builder.intern(op.payload);
  out.stream = builder.intern(op.stream);
  out.handle = builder.intern(op.handle);
  if (!op.function.empty()) {
    out.site = builder.site({.frames = {{.file = "train.py", .function = op.function, .line = 10}}});
  }
  if (!op.counts.empty() || !op.color.empty()) {
    out.extra = builder.extra({.counts = op.counts, .color = op.color});
  }
  const bool issues = is_collective(op.kind) || is_point_to_point(op.kind);
  if (issues && (is_immediate(op.kind) || !op.handle.empty() || !op.stream.empty()))
    out.flags |= kOpNonblocking;
  return out;
}

std::string end_text(ProgramEnd end) {
  switch (end.kind) {
    case EndKind::kUnknown:
      return "unknown";
    case EndKind::kExited:
      return "exited " + std::to_string(end.status);
    case EndKind::kKilled:
      return "killed " + std::to_string(end.status);
    case EndKind::kRunning:
      return "running";
  }
  return "unknown";
}

std::string join_counts(const std::vector<std::uint64_t>& counts) {
  std::string text;
  for (const std::uint64_t count : counts) text += (text.empty() ? "" : ",") + std::to_string(count);
  return text;
}

/// The lines of one rank: a launch without brackets around it becomes one batch line.
std::vector<std::string> program_lines(const JobSketch& sketch, const std::vector<SketchOp>& program) {
  std::vector<std::string> lines;
  bool in_brackets = false;
  for (std::size_t i = 0; i < program.size(); ++i) {
    const SketchOp& op = program[i];
    if (op.kind == OpKind::kGroupStart) in_brackets = true;
    if (op.kind == OpKind::kGroupEnd) in_brackets = false;
    if (in_brackets || op.launch == 0 || op.kind == OpKind::kGroupEnd) {
      lines.push_back(op_line(sketch, op));
      continue;
    }
    std::string batch = "batch[" + op_line(sketch, op);
    while (i + 1 < program.size() && program[i + 1].launch == op.launch) {
      batch += "; " + op_line(sketch, program[++i]);
    }
    lines.push_back(batch + "]");
  }
  return lines;
}

}  // namespace

Job build_job(const JobSketch& sketch) {
  JobBuilder builder;
  builder.set_library(sketch.library);
  std::vector<CommIndex> comms;
  for (const SketchComm& comm : sketch.communicators) {
    comms.push_back(builder.communicator(comm.name, comm.name, comm.members));
    builder.set_library(comms.back(), comm.library);
  }
  for (std::size_t rank = 0; rank < sketch.programs.size(); ++rank) {
    const auto job_rank = static_cast<std::int32_t>(rank);
    Program& program = builder.program(job_rank);
    for (const SketchOp& op : sketch.programs[rank]) {
      // The launch number says all that the brackets do.
      if (op.kind == OpKind::kGroupStart || op.kind == OpKind::kGroupEnd) continue;
      program.operations.push_back(build_operation(builder, comms, op));
    }
    builder.set_end(job_rank, sketch.ends[rank]);
  }
  builder.set_ranks_expected(sketch.programs.size());
  return std::move(builder).build();
}

std::string op_line(const JobSketch& sketch, const SketchOp& op) {
  std::string line(op_name(op.kind));
  if (is_point_to_point(op.kind) || op.kind == OpKind::kProbe) line += " " + std::to_string(op.peer);
  if (op.comm >= 0) line += " " + sketch.communicators[static_cast<std::size_t>(op.comm)].name;
  if (!op.datatype.empty()) line += " " + op.datatype;
  if (!op.count.empty()) line += "[" + op.count + "]";
  if (!op.payload.empty()) line += " " + op.payload;
  if (has_root(op.kind)) line += " root=" + std::to_string(op.peer);
  if (!op.redop.empty()) line += " redop=" + op.redop;
  if (op.tag != kNoTag) line += " tag=" + std::to_string(op.tag);
  if (!op.stream.empty()) line += " stream=" + op.stream;
  if (!op.handle.empty()) line += " handle=" + op.handle;
  if (!op.color.empty()) line += " color=" + op.color;
  if (!op.counts.empty()) line += " counts=" + join_counts(op.counts);
  if (!op.function.empty()) line += " site=train.py:" + op.function + ":10";
  if (op.state != OpState::kUnknown) line += " state=" + std::string(op_state_name(op.state));
  return line;
}

std::string to_job_json(const JobSketch& sketch) {
  std::string json = "{\"schema\": \"lockstep-job/1\",\n \"groups\": {";
  for (const SketchComm& comm : sketch.communicators) {
    if (&comm != &sketch.communicators.front()) json += ", ";
    json += "\"" + comm.name + "\": [";
    for (std::size_t i = 0; i < comm.members.size(); ++i) {
      json += (i == 0 ? "" : ",") + std::to_string(comm.members[i]);
    }
    json += "]";
  }
  json += "},\n \"libraries\": {";
  std::string libraries;
  for (const SketchComm& comm : sketch.communicators) {
    if (comm.library == Library::kUnknown) continue;
    libraries += (libraries.empty() ? "\"" : ", \"") + comm.name + "\": \"" + std::string(library_name(comm.library)) + "\"";
  }
  json += libraries + "},\n \"ranks\": {";
  for (std::size_t rank = 0; rank < sketch.programs.size(); ++rank) {
    json += (rank == 0 ? "\n  \"" : ",\n  \"") + std::to_string(rank) + "\": [";
    const std::vector<std::string> lines = program_lines(sketch, sketch.programs[rank]);
    for (std::size_t i = 0; i < lines.size(); ++i)
      json += (i == 0 ? "\n    \"" : ",\n    \"") + lines[i] + "\"";
    json += "]";
  }
  json += "},\n \"ends\": {";
  for (std::size_t rank = 0; rank < sketch.ends.size(); ++rank) {
    json +=
        (rank == 0 ? "\"" : ", \"") + std::to_string(rank) + "\": \"" + end_text(sketch.ends[rank]) + "\"";
  }
  json += "}";
  if (sketch.library != Library::kUnknown) {
    json += ",\n \"library\": \"" + std::string(library_name(sketch.library)) + "\"";
  }
  return json + "}\n";
}

}  // namespace lockstep::testing
