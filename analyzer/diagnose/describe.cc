// See the header.
#include "diagnose/describe.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/rank_ranges.h"
#include "diagnose/site_words.h"

namespace lockstep {
namespace {

std::string_view base_name(std::string_view path) {
  const std::size_t slash = path.find_last_of('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

std::string frame_place(const Frame& frame) {
  if (frame.file.empty()) return "";
  if (frame.line == 0) return std::string(base_name(frame.file));
  return fmt::format("{}:{}", base_name(frame.file), frame.line);
}

}  // namespace

OperationView Describer::view(ProgramIndex program, std::uint32_t index) const {
  const Operation& o = operation(program, index);
  const OperationExtra& extra = job_.extra(o);
  OperationView view{.rank = job_.program(program).rank,
                     .op = std::string(op_name(o.kind)),
                     .count = job_.count_text(o.count),
                     .datatype = std::string(job_.datatype(o.datatype)),
                     .redop = std::string(job_.redop(o.redop)),
                     .payload = std::string(job_.text(o.payload)),
                     .label = extra.label,
                     .site = job_.site(o.site).frames,
                     .state = o.state == OpState::kUnknown ? "" : std::string(op_state_name(o.state)),
                     .native_op = extra.native_name,
                     .native_seq = extra.native_seq,
                     .file = job_.source(job_.program(program).source),
                     .line = o.line};
  if (o.comm != kNoComm) {
    view.communicator = job_.communicator(o.comm).name;
    view.members = job_.communicator(o.comm).members;
  }
  if (is_collective(o.kind)) view.seq = o.seq;
  if (is_point_to_point(o.kind)) view.seq = message_seq(program, index);
  if (o.peer >= 0) view.peer = o.peer;
  return view;
}

Finding::CommunicatorView Describer::communicator_view(CommIndex comm) const {
  const Communicator& communicator = job_.communicator(comm);
  return {.id = communicator.id, .name = communicator.name, .ranks = communicator.members};
}

Finding::Position Describer::position(ProgramIndex program, std::uint32_t index) const {
  const Operation& o = operation(program, index);
  const OperationExtra& extra = job_.extra(o);
  return {.seq = is_point_to_point(o.kind) ? message_seq(program, index) : o.seq,
          .op = std::string(op_name(o.kind)),
          .native_seq = extra.native_seq,
          .native_op = extra.native_name};
}

Evidence Describer::evidence(ProgramIndex program, std::uint32_t index) const {
  return {.file = job_.source(job_.program(program).source), .line = operation(program, index).line};
}

std::string Describer::communicator(CommIndex comm) const {
  const Communicator& communicator = job_.communicator(comm);
  std::vector<std::int32_t> ranks = communicator.members;
  std::ranges::sort(ranks);
  return fmt::format("{} [{}]", communicator.name, rank_ranges(ranks, 40));
}

std::string Describer::arguments(const Operation& o) const {
  std::string text(op_name(o.kind));
  const std::string_view datatype = job_.datatype(o.datatype);
  const std::string count = job_.count_text(o.count);
  if (!datatype.empty() || !count.empty()) {
    text += fmt::format(" {}{}", datatype, count.empty() ? "" : fmt::format("[{}]", count));
  }
  if (has_reduction(o.kind) && o.redop != RedopIndex{}) text += fmt::format(" {}", job_.redop(o.redop));
  if (has_root(o.kind) && o.peer >= 0) text += fmt::format(" root {}", o.peer);
  if (const OperationExtra& extra = job_.extra(o); !extra.members.empty()) {
    text += fmt::format(" of [{}]", rank_ranges(extra.members, 40));
  }
  if (o.payload != StringIndex{}) text += fmt::format(" {}", job_.text(o.payload));
  if (job_.library_of(o.comm) == Library::kMpi && is_collective(o.kind) && o.nonblocking()) text += " (nonblocking)";
  return text;
}

std::string Describer::call(ProgramIndex program, std::uint32_t index) const {
  const Operation& o = operation(program, index);
  const std::string on = o.comm == kNoComm ? "" : " on " + communicator(o.comm);
  if (is_point_to_point(o.kind)) {
    return fmt::format("{} #{} {} rank {}{}", op_name(o.kind), message_seq(program, index),
                       is_send(o.kind) ? "to" : "from", o.peer, on);
  }
  return fmt::format("{} #{}{}", op_name(o.kind), o.seq, on);
}

std::string Describer::site(SiteIndex site) const {
  const auto& frames = job_.site(site).frames;
  if (frames.empty()) return "";
  if (std::string text = torch_site_text(frames, ""); !text.empty()) return text;
  const Frame& inner = frames.front();
  if (inner.function.empty()) return frame_place(inner);
  // A helper that only wraps the call says little: name who called it as well.
  if (frames.size() > 1 && !frames[1].function.empty() && frames[1].function.front() != '<') {
    const std::string place = frame_place(frames[1]);
    return fmt::format("{} < {}{}", inner.function, frames[1].function, place.empty() ? "" : " (" + place + ")");
  }
  const std::string place = frame_place(inner);
  return place.empty() ? inner.function : fmt::format("{} ({})", inner.function, place);
}

std::string Describer::from_site(const Operation& operation) const {
  std::string where = torch_site_text(job_.site(operation.site).frames, op_name(operation.kind));
  if (where.empty()) where = site(operation.site);
  return where.empty() ? "" : " from " + where;
}

std::string Describer::from_short_site(const Operation& operation) const {
  const std::string where = short_torch_site_text(job_.site(operation.site).frames, op_name(operation.kind));
  return where.empty() ? from_site(operation) : " from " + where;
}

std::uint32_t Describer::message_seq(ProgramIndex program, std::uint32_t index) const {
  const auto& operations = job_.program(program).operations;
  if (!takes_effect(operations[index])) return 0;
  const auto ordinal = std::count_if(operations.begin(), operations.begin() + index,
                                     [](const Operation& o) { return is_placed_message(o); });
  const GateIndex gate = match_.message_gates[to_size(program)][static_cast<std::size_t>(ordinal)];
  return gate == kNoGate ? 0 : owner_of(match_, gate).seq;
}

std::string times_text(std::uint64_t times) {
  if (times == 0) return "not at all";
  return times == 1 ? "once" : fmt::format("{} times", times);
}

}  // namespace lockstep
