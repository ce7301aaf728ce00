// The key=value part of a Job JSON line, and putting the finished operation into the program.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "read/job_line_draft.h"
#include "read/site_text.h"

namespace lockstep {
namespace {

std::optional<OpState> state_from_name(std::string_view name) {
  if (name == "unknown") return OpState::kUnknown;
  if (name == "entered") return OpState::kEntered;
  if (name == "enqueued") return OpState::kEnqueued;
  if (name == "started") return OpState::kStarted;
  if (name == "completed") return OpState::kCompleted;
  return std::nullopt;
}

/// "1,2,3" or "[1,2,3]" through `parse(word, value)`; false on anything else.
template <class T, class Parse>
bool parse_list(std::string_view text, std::vector<T>& values, Parse parse) {
  if (text.starts_with('[') && text.ends_with(']')) text = text.substr(1, text.size() - 2);
  values.clear();
  while (true) {
    const std::size_t comma = text.find(',');
    T value{};
    if (!parse(text.substr(0, comma), value)) return false;
    values.push_back(value);
    if (comma == std::string_view::npos) return true;
    text.remove_prefix(comma + 1);
  }
}

template <class T>
bool parse_all(std::string_view text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return !text.empty() && error == std::errc{} && end == text.data() + text.size();
}

/// Per-member counts as MPI and torch name them.
bool names_counts(std::string_view key) {
  return key == "counts" || key == "send_counts" || key == "sendcounts" || key == "input_split_sizes" || key == "input_splits" ||
         key == "in_splits";
}
bool names_recv_counts(std::string_view key) {
  return key == "recv_counts" || key == "recvcounts" || key == "output_split_sizes" || key == "output_splits" || key == "out_splits";
}

}  // namespace

void JobLineReader::read_key(Draft& draft, std::string_view key, std::string_view value) {
  JobBuilder& builder = intake_.builder();
  Operation& operation = draft.operation;
  const std::string text = unescape_word(value);
  bool good = true;
  if (key == "group" || key == "comm" || key == "communicator" || key == "pg") {
    draft.group = value;
  } else if (key == "count" || key == "numel" || key == "elements") {
    std::uint64_t number = 0;
    if (good = !text.empty(); parse_all(text, number) && number <= Count::kMaxNumber) {
      operation.count = Count::of(number);
    } else if (good) {
      operation.count = Count::symbol(builder.intern(text));
    }
  } else if (key == "dtype" || key == "datatype" || key == "type") {
    const std::string_view known = datatype_from_native_name(text);
    operation.datatype = builder.datatype(known.empty() ? text : known);
  } else if (key == "shape") {
    std::vector<std::uint64_t> sizes;
    good = parse_list(text, sizes, parse_all<std::uint64_t>);
    std::uint64_t number = 1;
    for (const std::uint64_t size : sizes) good = good && !__builtin_mul_overflow(number, size, &number) && number <= Count::kMaxNumber;
    if (good) operation.count = Count::of(number);
  } else if (key == "async_op" || key == "async") {
    if (text == "True" || text == "true" || text == "1") operation.flags |= kOpNonblocking;
  } else if (key == "root" || key == "peer" || key == "src" || key == "dst" || key == "dest" || key == "source" || key == "to" ||
             key == "from") {
    std::int32_t peer = kNoPeer;
    good = parse_peer(text, peer);
    if (good) operation.peer = peer;
  } else if (key == "redop" || key == "op" || key == "reduce_op" || key == "reduction") {
    const std::string_view known = redop_from_native_name(text);
    operation.redop = builder.redop(known.empty() ? text : known);
  } else if (key == "tag") {
    std::uint64_t tag = 0;
    if (text == "any" || text == "MPI_ANY_TAG") {
      operation.tag = kAnyTag;
    } else if (good = parse_all(text, tag) && tag < kAnyTag; good) {
      operation.tag = static_cast<std::uint32_t>(tag);
    }
  } else if (key == "stream") {
    operation.stream = builder.intern(text);
  } else if (key == "handle" || key == "event" || key == "graph") {
    operation.handle = builder.intern(text);
  } else if (key == "payload") {
    operation.payload = builder.intern(text);
  } else if (key == "site") {
    operation.site = builder.site(parse_site(value));
  } else if (key == "label") {
    draft.label = text;
  } else if (key == "native") {
    draft.native_name = text;
  } else if (key == "state") {
    const auto state = state_from_name(text);
    good = state.has_value();
    if (good) operation.state = *state;
  } else if (key == "at") {
    double at = 0;
    good = parse_all(text, at) && std::isfinite(at);
    if (good) draft.rare.at = at;
    draft.has_rare |= good;
  } else if (key == "native_seq") {
    std::int64_t seq = 0;
    good = parse_all(text, seq);
    if (good) draft.rare.native_seq = seq;
    draft.has_rare |= good;
  } else if (names_counts(key) || names_recv_counts(key)) {
    auto& counts = names_counts(key) ? draft.rare.counts : draft.rare.recv_counts;
    good = parse_list(text, counts, parse_all<std::uint64_t>);
    if (!good) counts.clear();
    draft.has_rare |= good;
  } else if (key == "members" || key == "ranks") {
    good = parse_list(text, draft.rare.members, parse_rank);
    if (!good) draft.rare.members.clear();
    draft.has_rare |= good;
  } else if (key == "exclude" || key == "excluded" || key == "excludeRanksList") {
    good = parse_list(text, draft.excluded, parse_rank);
    if (!good) draft.excluded.clear();
  } else if (key == "color" || key == "key" || key == "thread") {
    (key == "color" ? draft.rare.color : key == "key" ? draft.rare.key : draft.rare.thread) = text;
    draft.has_rare = true;
  } else if (key == "result") {
    // ncclInProgress of a non-blocking communicator is no error.
    const bool in_effect = text == "0" || text == "7" || text == "success" || text == "ncclSuccess" || text == "in_progress" ||
                           text == "ncclInProgress";
    if (!in_effect) operation.flags |= kOpFailed;
  } else if (key == "flags") {
    read_flags(draft, text);
  } else {
    return warn(fmt::format("key {} is not known: ignored", excerpt(key)));
  }
  if (!good) warn(fmt::format("{} is no value for {}: ignored", excerpt(value), key));
}

void JobLineReader::read_flags(Draft& draft, std::string_view value) {
  while (!value.empty()) {
    const std::size_t comma = value.find(',');
    const std::string_view flag = value.substr(0, comma);
    if (flag == "nonblocking") {
      draft.operation.flags |= kOpNonblocking;
    } else if (flag == "blocking") {
      draft.blocking = true;
    } else if (flag == "captured") {
      draft.operation.flags |= kOpCaptured;
    } else if (flag == "thread_unsafe") {
      draft.operation.flags |= kOpThreadUnsafe;
    } else if (flag == "gap") {
      draft.operation.flags |= kOpGap;
    } else if (flag == "held") {
      draft.operation.flags |= kOpHeld;
    } else if (flag == "failed") {
      draft.operation.flags |= kOpFailed;
    } else if (flag == "persistent") {
      draft.operation.flags |= kOpPersistent;
    } else {
      warn(fmt::format("{} is no flag: ignored", excerpt(flag)));
    }
    if (comma == std::string_view::npos) break;
    value.remove_prefix(comma + 1);
  }
}

/// Those that are left out make no call, so those that stay meet on a communicator of their own.
void JobLineReader::place_shrink(Draft& draft) {
  JobBuilder& builder = intake_.builder();
  const Communicator& old = builder.communicator(draft.operation.comm);
  const auto is_listed = [](const std::vector<std::int32_t>& list, std::int32_t rank) { return std::ranges::find(list, rank) != list.end(); };
  std::vector<std::int32_t> survivors;
  for (const std::int32_t rank : old.members) {
    const bool stays = draft.excluded.empty() ? is_listed(draft.rare.members, rank) : !is_listed(draft.excluded, rank);
    if (stays) survivors.push_back(rank);
  }
  if (survivors.empty() || survivors.size() == old.members.size()) return;
  const std::uint32_t number = shrinks_[static_cast<std::uint32_t>(draft.operation.comm)]++;
  const std::string id = fmt::format("{}/shrink{}:{}", old.id, number, fmt::join(survivors, ","));
  const std::string name = fmt::format("{} without {}", old.name, old.members.size() - survivors.size());
  draft.operation.comm = builder.communicator(id, name, survivors);
  draft.rare.members.clear();  // it says them itself
}

void JobLineReader::append(Draft& draft) {
  Operation& operation = draft.operation;
  if (operation.kind == OpKind::kShrink && operation.comm != kNoComm) place_shrink(draft);
  const bool is_issued = op_class(operation.kind) != OpClass::kCompletion && operation.kind != OpKind::kGraphLaunch;
  if (is_issued && (operation.handle != StringIndex{} || operation.stream != StringIndex{})) {
    operation.flags |= kOpNonblocking;
  }
  if (operation.kind == OpKind::kAllToAll && !(draft.rare.counts.empty() && draft.rare.recv_counts.empty())) {
    operation.kind = OpKind::kAllToAllV;
  }
  if (draft.blocking) operation.flags = static_cast<std::uint16_t>(operation.flags & ~kOpNonblocking);
  if (draft.has_rare) {
    draft.rare.label = std::move(draft.label);
    draft.rare.native_name = std::move(draft.native_name);
    operation.extra = intake_.builder().extra(std::move(draft.rare));
  } else {
    operation.extra = intake_.shared_extra(draft.label, draft.native_name);
  }
  program_.operations.push_back(operation);
}

}  // namespace lockstep
