// See the header. Keys that are not known are passed over; all but the name are optional, for versions differ in them.
#include "read/flight_entries.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "read/native_names.h"

namespace lockstep {
namespace {

constexpr std::size_t kMostFrames = 192;
constexpr std::size_t kMostTensors = 4096;
constexpr std::size_t kMostGroups = std::size_t{1} << 20;
constexpr std::size_t kMostMembers = std::size_t{1} << 20;

/// Elements of all tensors of a list of shapes; nothing where there is none.
std::optional<std::uint64_t> elements(const PlainValue& shapes, const PlainValues& values) {
  const auto tensors = values.items(shapes);
  if (tensors.empty()) return std::nullopt;
  std::uint64_t sum = 0;
  for (const PlainValue& shape : tensors.first(std::min(tensors.size(), kMostTensors))) {
    std::uint64_t product = 1;
    for (const PlainValue& extent : values.items(shape)) {
      const std::int64_t size = extent.as_integer(0);
      if (size < 0 || __builtin_mul_overflow(product, static_cast<std::uint64_t>(size), &product)) return std::nullopt;
    }
    if (__builtin_add_overflow(sum, product, &sum)) return std::nullopt;
  }
  return std::min(sum, Count::kMaxNumber);
}

OpState state_of(std::string_view text) {
  if (text == "completed") return OpState::kCompleted;
  if (text == "started") return OpState::kStarted;
  if (text == "scheduled") return OpState::kEnqueued;
  return OpState::kUnknown;
}

/// Names that only recorders use, beside those of native_names.h.
std::optional<OpKind> recorder_kind(std::string_view name) {
  struct Row {
    std::string_view name;
    OpKind kind;
  };
  static constexpr Row kRows[] = {
      {"all_reduce_barrier", OpKind::kBarrier},      {"all_reduce_sparse", OpKind::kAllReduce},
      {"all_gather_single", OpKind::kAllGather},     {"reduce_scatter_single", OpKind::kReduceScatter},
      {"all_to_all_v_single", OpKind::kAllToAllV},   {"ALLGATHER_coalesced", OpKind::kAllGather},
      {"ALLREDUCE_coalesced", OpKind::kAllReduce},   {"REDUCE_SCATTER_coalesced", OpKind::kReduceScatter},
      {"BROADCAST_coalesced", OpKind::kBroadcast},   {"ALLTOALL_coalesced", OpKind::kAllToAllV},
      {"ALLTOALL_BASE_coalesced", OpKind::kAllToAllV}, {"_ALLGATHER_BASE_coalesced", OpKind::kAllGather},
      {"_REDUCE_SCATTER_BASE_coalesced", OpKind::kReduceScatter},
  };
  const auto* const row = std::ranges::find(kRows, name, &Row::name);
  if (row != std::end(kRows)) return row->kind;
  if (const auto named = kind_from_native_name(name)) {
    // Splits are not recorded, and uneven ones go by the same name.
    return named->kind == OpKind::kAllToAll ? OpKind::kAllToAllV : named->kind;
  }
  return std::nullopt;
}

/// The number at the start of `text`, which is moved behind it.
std::int32_t take_number(std::string_view& text) {
  std::int32_t value = -1;
  const auto [at, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc{}) return -1;
  text.remove_prefix(static_cast<std::size_t>(at - text.data()));
  return value;
}

/// Frames of C++ and of the interpreter, which stand among Python's where they were asked for (TORCH_FR_CPP_STACK).
bool is_native(const Frame& frame) {
  constexpr std::string_view kSources[] = {".c", ".cc", ".cpp", ".cxx", ".cu", ".h", ".hpp", ".so"};
  const std::string_view file = frame.file, function = frame.function;
  return file.find(".so.") != std::string_view::npos || function == "??" || function == "_start" || function.starts_with("_Py") ||
         (function.starts_with("Py") && !file.ends_with(".py")) ||
         std::ranges::any_of(kSources, [&](std::string_view source) { return file.ends_with(source); });
}

/// torch's own wrappers around a call say nothing about who calls.
bool is_wrapper(std::string_view file) {
  return file.ends_with("torch/distributed/distributed_c10d.py") || file.ends_with("torch/distributed/c10d_logger.py") ||
         file.ends_with("torch/distributed/_functional_collectives.py") || file.ends_with("torch/_ops.py") ||
         file.ends_with("torch/utils/_contextlib.py");
}

/// Whether `text` is `literal`, whose length it has: compared in place, without a call, as each field of each entry is.
template <std::size_t kSize>
bool is(std::string_view text, const char (&literal)[kSize]) {
  return __builtin_memcmp(text.data(), literal, kSize - 1) == 0;
}

bool is_ending_name(std::string_view name) {
  if (name == "coalesced") return true;
  // "ALLGATHER_coalesced" is an end; "allgather_into_tensor_coalesced" is a call.
  return name.ends_with("_coalesced") && std::ranges::none_of(name.substr(0, name.size() - 10), [](char c) { return c >= 'a' && c <= 'z'; });
}

}  // namespace

struct FlightEntries::Fields {
  PlainValue group{}, input_sizes{}, output_sizes{}, input_types{}, output_types{}, frames{};
  std::string_view name{}, state{};
  std::int64_t record = -1, id = -1, op = -1, collective_seq = -1, message_seq = -1, created_ns = 0, started_ns = 0, completed_ns = 0;
  bool retired = false, is_message = false;
};

FlightEntries::Fields FlightEntries::fields_of(std::span<const PlainValue> pairs) {
  Fields fields;
  std::int64_t old_seq = -1;
  for (std::size_t i = 0; i + 1 < pairs.size(); i += 2) {
    const std::string_view key = pairs[i].as_text();
    const PlainValue& value = pairs[i + 1];
    switch (key.size()) {
      case 5:
        if (is(key, "pg_id")) fields.id = value.as_integer(-1);
        if (is(key, "op_id")) fields.op = value.as_integer(-1);
        if (is(key, "state")) fields.state = value.as_text();
        break;
      case 6:
        if (is(key, "frames")) fields.frames = value;
        if (is(key, "is_p2p")) fields.is_message = value.as_bool();
        if (is(key, "seq_id")) old_seq = value.as_integer(-1);
        break;
      case 7:
        if (is(key, "retired")) fields.retired = value.as_bool();
        break;
      case 9:
        if (is(key, "record_id")) fields.record = value.as_integer(-1);
        break;
      case 10:
        if (is(key, "p2p_seq_id")) fields.message_seq = value.as_integer(-1);
        break;
      case 11:
        if (is(key, "input_sizes")) fields.input_sizes = value;
        break;
      case 12:
        if (is(key, "output_sizes")) fields.output_sizes = value;
        if (is(key, "input_dtypes")) fields.input_types = value;
        break;
      case 13:
        if (is(key, "output_dtypes")) fields.output_types = value;
        if (is(key, "process_group")) fields.group = value;
        break;
      case 14:
        if (is(key, "profiling_name")) fields.name = value.as_text();
        break;
      case 15:
        if (is(key, "time_created_ns")) fields.created_ns = value.as_integer(0);
        break;
      case 17:
        if (is(key, "collective_seq_id")) fields.collective_seq = value.as_integer(-1);
        break;
      case 26:
        if (is(key, "time_discovered_started_ns")) fields.started_ns = value.as_integer(0);
        break;
      case 28:
        if (is(key, "time_discovered_completed_ns")) fields.completed_ns = value.as_integer(0);
        break;
      default:
        break;
    }
  }
  // Before 2.3 there was one number for both kinds.
  if (fields.collective_seq < 0 && !fields.is_message) fields.collective_seq = old_seq;
  if (fields.message_seq < 0 && fields.is_message) fields.message_seq = old_seq;
  return fields;
}

const FlightEntries::Name& FlightEntries::name_of(std::string_view text) {
  if (const auto known = names_.find(text); known != names_.end()) return known->second;
  std::string_view rest = text.substr(0, 256);
  if (const std::size_t colon = rest.find(':'); colon != std::string_view::npos) rest.remove_prefix(colon + 1);
  Name name;
  name.retires_when_done = text.starts_with("gloo:");
  const bool sends = rest.starts_with("send ");
  if (sends || rest.starts_with("recv ")) {
    rest.remove_prefix(5);
    name.kind = sends ? OpKind::kSend : OpKind::kRecv;
    name.self = take_number(rest);
    if (rest.starts_with(sends ? "->" : "<-")) {
      rest.remove_prefix(2);
      name.peer = take_number(rest);
    }
  } else {
    name.ends_group = is_ending_name(rest);
    name.kind = recorder_kind(rest).value_or(OpKind::kUnknown);
  }
  return names_.emplace(std::string(text), name).first->second;
}

std::uint32_t FlightEntries::group_named(std::string_view name) {
  if (const auto known = groups_.find(name); known != groups_.end()) return known->second;
  const auto index = static_cast<std::uint32_t>(dump_.groups.size());
  dump_.groups.push_back({.name = std::string(name.substr(0, 256))});
  last_of_group_.emplace_back(0, 0);
  last_op_of_group_.push_back(-1);
  groups_.emplace(std::string(name), index);
  return index;
}

std::uint32_t FlightEntries::group_of(const PlainValue& tuple, const PlainValues& values) {
  const auto parts = values.items(tuple);
  const std::string_view name = parts.empty() ? tuple.as_text() : parts.front().as_text();
  if (groups_.size() >= kMostGroups && !groups_.contains(name)) return 0;
  const std::uint32_t group = group_named(name);
  if (parts.size() > 1 && dump_.groups[group].description.empty()) {
    const std::string_view description = parts[1].as_text().substr(0, 256);
    if (description != "undefined") dump_.groups[group].description = description;
  }
  return group;
}

SiteIndex FlightEntries::site_of(const PlainValue& list, const PlainValues& values) {
  auto frames = values.items(list);
  if (frames.empty()) return SiteIndex{};
  frames = frames.first(std::min(frames.size(), kMostFrames));
  // Equal frames are mostly one dictionary in the file, so equal stacks are told by their nodes.
  std::uint64_t hash = frames.size();
  bool kept = true;
  for (const PlainValue& frame : frames) {
    hash = (hash ^ frame.node) * 0x9e3779b97f4a7c15ULL + (hash >> 29);
    kept = kept && values.is_kept(frame);
  }
  if (const auto known = kept ? sites_by_nodes_.find(hash) : sites_by_nodes_.end(); known != sites_by_nodes_.end()) return known->second;
  CallSite site;
  for (const PlainValue& value : frames) {
    const auto pairs = values.items(value);
    Frame frame;
    for (std::size_t i = 0; i + 1 < pairs.size(); i += 2) {
      const std::string_view field = pairs[i].as_text();
      if (field == "name") frame.function = pairs[i + 1].as_text().substr(0, 1024);
      if (field == "filename") frame.file = pairs[i + 1].as_text().substr(0, 1024);
      if (field == "line") frame.line = static_cast<std::uint32_t>(std::clamp<std::int64_t>(pairs[i + 1].as_integer(0), 0, 0xffffffff));
    }
    site.frames.push_back(std::move(frame));
  }
  if (std::ranges::any_of(site.frames, [](const Frame& frame) { return frame.file.ends_with(".py"); })) std::erase_if(site.frames, is_native);
  const auto caller = std::find_if(site.frames.begin(), site.frames.end() - 1, [](const Frame& frame) { return !is_wrapper(frame.file); });
  site.frames.erase(site.frames.begin(), caller);
  std::string key;
  for (const Frame& frame : site.frames) key += fmt::format("{}\n{}\n{}\n", frame.file, frame.function, frame.line);
  const auto [at, added] = sites_by_text_.try_emplace(std::move(key), SiteIndex{static_cast<std::uint32_t>(dump_.sites.size())});
  if (added) dump_.sites.push_back(std::move(site));
  constexpr std::size_t kMostRemembered = 65536;
  if (kept && sites_by_nodes_.size() < kMostRemembered) sites_by_nodes_.emplace(hash, at->second);
  return at->second;
}

DatatypeIndex FlightEntries::datatype_of(const PlainValue& types, const PlainValues& values) {
  const auto items = values.items(types);
  if (items.empty()) return DatatypeIndex{};
  const std::string_view text = items.front().as_text().substr(0, 64);
  const std::string_view ours = datatype_from_native_name(text);
  const std::string_view name = ours.empty() ? text : ours;
  const auto known = std::ranges::find(dump_.datatypes, name);
  if (known != dump_.datatypes.end()) return DatatypeIndex{static_cast<std::uint16_t>(known - dump_.datatypes.begin())};
  if (dump_.datatypes.size() >= 256) return DatatypeIndex{};
  dump_.datatypes.emplace_back(name);
  return DatatypeIndex{static_cast<std::uint16_t>(dump_.datatypes.size() - 1)};
}

void FlightEntries::record(std::span<const PlainValue> pairs, const PlainValues& values) {
  if (pairs.empty()) return;
  const Fields fields = fields_of(pairs);
  if (fields.name.empty()) return;
  if (dump_.entries++ == 0) dump_.first_record = std::max<std::int64_t>(fields.record, 0);
  if (fields.record >= 0 && fields.record < last_record_ && dump_.warnings.empty()) {
    dump_.warnings.push_back(fmt::format("entry {} follows entry {}: not in the order in which the calls were made", fields.record, last_record_));
  }
  last_record_ = std::max(last_record_, fields.record);
  dump_.last_ns = std::max({dump_.last_ns, fields.created_ns, fields.started_ns, fields.completed_ns});
  const Name& name = name_of(fields.name);
  const std::uint32_t group = group_of(fields.group, values);
  if (!dump_.groups[group].id && fields.id >= 0) dump_.groups[group].id = fields.id;
  OpState state = state_of(fields.state);
  if (name.retires_when_done) {
    dump_.retires_when_done = true;
    if (fields.retired && state == OpState::kEnqueued) state = OpState::kCompleted;
    // Operations have one row of numbers in their group, messages with them.
    std::int64_t& last_op = last_op_of_group_[group];
    const std::int64_t before = last_op < 0 && dump_.first_record == 0 ? 0 : last_op;
    dump_.has_unrecorded = dump_.has_unrecorded || (before >= 0 && fields.op > before + 1);
    last_op = std::max(last_op, fields.op);
  }
  dump_.timed_out = dump_.timed_out || (fields.retired && state != OpState::kCompleted && !fields.is_message);
  if (name.ends_group) return end_group(fields, name, group, state);
  if (name.kind == OpKind::kUnknown) {
    if (dump_.unknown_calls++ == 0) dump_.unknown_name = fields.name.substr(0, 64);
    return;
  }
  Operation operation{.peer = name.peer, .kind = name.kind, .state = state};
  operation.site = site_of(fields.frames, values);
  const auto in = elements(fields.input_sizes, values);
  const auto out = elements(fields.output_sizes, values);
  const bool by_output = name.kind == OpKind::kReduceScatter || name.kind == OpKind::kScatter || name.kind == OpKind::kRecv;
  const auto& count = by_output ? (out ? out : in) : (in ? in : out);
  if (count && name.kind != OpKind::kBarrier) operation.count = Count::of(*count);
  operation.datatype = name.kind == OpKind::kBarrier ? DatatypeIndex{} : datatype_of(fields.input_types, values);
  if (operation.datatype == DatatypeIndex{} && name.kind != OpKind::kBarrier) operation.datatype = datatype_of(fields.output_types, values);
  const bool is_message = is_point_to_point(name.kind);
  if (is_message) {
    dump_.groups[group].has_messages = true;
    if (dump_.groups[group].self < 0) dump_.groups[group].self = name.self;
  }
  const std::int64_t seq = is_message ? fields.message_seq : fields.collective_seq;
  const bool in_range = seq >= 1 && seq <= 0xfffffffeLL;
  fold_or_add(operation, {.seq = in_range ? static_cast<std::uint32_t>(seq) : 0, .group = group}, is_message);
  if (name.kind == OpKind::kAllToAllV && in && out && *in != *out) {
    dump_.uneven.push_back({static_cast<std::uint32_t>(dump_.operations.size() - 1), *out});
  }
  const bool in_flight = state == OpState::kEnqueued || state == OpState::kStarted;
  if (in_flight && dump_.in_flight.size() < FlightDump::kMostInFlight) {
    dump_.in_flight.push_back({static_cast<std::uint32_t>(dump_.operations.size() - 1), fields.created_ns});
  }
}

/// Entries of one group with one number belong together: messages are issued in one launch, collectives count as one call.
void FlightEntries::fold_or_add(const Operation& operation, const FlightCall& call, bool is_message) {
  auto& [last, launch] = last_of_group_[call.group];
  if (last != 0 && call.seq != 0 && dump_.calls[last - 1].seq == call.seq &&
      is_point_to_point(dump_.operations[last - 1].kind) == is_message) {
    Operation& before = dump_.operations[last - 1];
    if (!is_message) {
      if (before.count.is_number() && operation.count.is_number()) {
        before.count = Count::of(std::min(before.count.number() + operation.count.number(), Count::kMaxNumber));
      }
      before.state = std::min(before.state, operation.state);
      return;
    }
    if (before.launch == 0) before.launch = ++launches_;
    launch = before.launch;
    dump_.operations.push_back(operation);
    dump_.operations.back().launch = launch;
  } else {
    dump_.operations.push_back(operation);
  }
  dump_.calls.push_back(call);
  last = static_cast<std::uint32_t>(dump_.operations.size());
}

/// Its parts often stay "scheduled" (pytorch issue 137969): the end has their state.
void FlightEntries::end_group(const Fields& fields, const Name& name, std::uint32_t group, OpState state) {
  const std::uint32_t last = last_of_group_[group].first;
  const auto holds = [&](std::int64_t seq, bool messages) {
    return last != 0 && seq >= 1 && dump_.calls[last - 1].seq == seq && is_point_to_point(dump_.operations[last - 1].kind) == messages;
  };
  if (holds(fields.message_seq, true) && (fields.is_message || !holds(fields.collective_seq, false))) {
    constexpr std::size_t kMostBack = 65536;
    std::size_t looked = 0;
    for (std::size_t i = last; i-- > 0 && looked < kMostBack; ++looked) {
      if (dump_.calls[i].group != group) continue;
      if (dump_.calls[i].seq != fields.message_seq || !is_point_to_point(dump_.operations[i].kind)) break;
      dump_.operations[i].state = std::max(dump_.operations[i].state, state);
    }
  } else if (holds(fields.collective_seq, false)) {
    Operation& part = dump_.operations[last - 1];
    part.state = std::max(part.state, state);
  } else if (name.kind != OpKind::kUnknown && fields.collective_seq >= 1 && fields.collective_seq <= 0xfffffffeLL) {
    fold_or_add({.kind = name.kind, .state = state}, {.seq = static_cast<std::uint32_t>(fields.collective_seq), .group = group}, false);
  }
}

void FlightEntries::read_config(const PlainValue& config, const PlainValues& values) {
  const auto pairs = values.items(config);
  for (std::size_t i = 0; i + 1 < pairs.size() && groups_.size() < kMostGroups; i += 2) {
    // gloo writes down the members of each group before the group has its name, in one row after the other.
    const bool is_named = !pairs[i].as_text().empty();
    FlightGroup nameless;
    FlightGroup& group = is_named ? dump_.groups[group_named(pairs[i].as_text())] : nameless;
    const auto fields = values.items(pairs[i + 1]);
    for (std::size_t f = 0; f + 1 < fields.size(); f += 2) {
      const std::string_view key = fields[f].as_text();
      const PlainValue& value = fields[f + 1];
      if (key == "desc" && group.description.empty() && value.as_text() != "undefined") group.description = value.as_text().substr(0, 256);
      if (key != "ranks") continue;
      group.members.clear();
      for (const PlainValue& member : values.items(value).first(std::min(values.items(value).size(), kMostMembers))) {
        group.members.push_back(static_cast<std::int32_t>(member.as_integer(-1)));
      }
      std::string_view text = value.as_text();  // "[0, 1, 2]"
      while (group.members.size() < kMostMembers) {
        const std::size_t digit = text.find_first_of("0123456789");
        if (digit == std::string_view::npos) break;
        text.remove_prefix(digit);
        const std::int32_t rank = take_number(text);
        if (rank < 0) break;
        group.members.push_back(rank);
      }
      if (std::ranges::any_of(group.members, [](std::int32_t rank) { return rank < 0; }) || drop_repeated(group.members)) {
        dump_.warnings.push_back(fmt::format("group {} has members that are no set of ranks", excerpt(group.name)));
        std::erase_if(group.members, [](std::int32_t rank) { return rank < 0; });
      }
    }
    if (!is_named) dump_.others = std::move(nameless.members);
  }
}

void FlightEntries::read_status(const PlainValue& status, const PlainValues& values) {
  const auto pairs = values.items(status);
  for (std::size_t i = 0; i + 1 < pairs.size() && dump_.status.size() < kMostGroups; i += 2) {
    FlightStatus row{.id = pairs[i].as_integer(-1)};
    const auto fields = values.items(pairs[i + 1]);
    for (std::size_t f = 0; f + 1 < fields.size(); f += 2) {
      const std::string_view key = fields[f].as_text();
      if (key == "last_enqueued_collective") row.last_enqueued = fields[f + 1].as_integer(-1);
      if (key == "last_completed_collective") row.last_completed = fields[f + 1].as_integer(-1);
    }
    if (row.id >= 0) dump_.status.push_back(row);
  }
}

void FlightEntries::finish(const std::vector<std::pair<std::string_view, PlainValue>>& fields, const PlainValues& values) {
  for (const auto& [key, value] : fields) {
    if (key == "version") dump_.version = value.as_text().substr(0, 32);
    if (key == "pg_config") read_config(value, values);
    if (key == "pg_status") read_status(value, values);
  }
  // Completed by the end of their group.
  std::erase_if(dump_.in_flight, [&](const FlightDump::InFlight& call) {
    return dump_.operations[call.operation].state == OpState::kCompleted;
  });
}

}  // namespace lockstep
