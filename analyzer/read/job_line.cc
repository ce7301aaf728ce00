// The forms of a line: operations with their positions, batches, groups, exit, computation. Keys: job_line_keys.cc.
#include "read/job_line.h"

#include <fmt/format.h>

#include <algorithm>

#include "read/job_line_draft.h"
#include "read/native_names.h"
#include "read/site_text.h"

namespace lockstep {
namespace {

constexpr std::size_t kLongestNativeName = 64;
constexpr std::string_view kSpace = " \t\r\n\v\f";

std::string_view trim(std::string_view text) {
  const std::size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
bool is_semicolon(char c) { return c == ';'; }

/// Cuts where `is_separator`; outside [...] only, or everywhere where the brackets do not close.
template <bool (*is_separator)(char)>
std::vector<std::string_view> split(std::string_view text, bool see_brackets = true) {
  std::vector<std::string_view> parts;
  std::size_t depth = 0;
  std::size_t start = 0;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size()) {
      if (text[i] == '[') ++depth;
      if (text[i] == ']' && depth > 0) --depth;
      if (!is_separator(text[i]) || (see_brackets && depth > 0)) continue;
    }
    if (const std::string_view part = trim(text.substr(start, i - start)); !part.empty()) parts.push_back(part);
    start = i + 1;
  }
  return see_brackets && depth > 0 ? split<is_separator>(text, false) : parts;
}

std::string_view first_word(std::string_view text) { return text.substr(0, text.find_first_of(kSpace)); }

}  // namespace

std::vector<std::string_view> split_words(std::string_view text) { return split<is_space>(text); }

void JobLineReader::begin(std::int32_t rank, SourceIndex source) {
  program_ = Program{.rank = rank, .end = {EndKind::kExited, 0}, .source = source};
  index_ = line_ = launches_ = launch_ = open_groups_ = 0;
  exited_ = warned_after_exit_ = false;
  shrinks_.clear();
}

Program JobLineReader::finish() {
  if (open_groups_ > 0) {
    warn("group_start without group_end: what stands in the group was never issued");
    for (Operation& operation : program_.operations) {
      if (launch_ == 0 || operation.launch != launch_) continue;
      const std::string label = fmt::format("{}, not issued: its group was not closed", op_name(operation.kind));
      operation = {.site = operation.site, .line = operation.line, .extra = intake_.shared_extra(label, {}), .kind = OpKind::kCompute};
    }
  }
  return std::move(program_);
}

void JobLineReader::warn(std::string_view message) {
  warnings_.warn(line_, fmt::format("ranks.{}[{}]: {}", program_.rank, index_ == 0 ? 0 : index_ - 1, message));
}

void JobLineReader::unreadable(std::string_view text, std::string_view why) {
  warn(fmt::format("cannot read {}: {}", excerpt(text), why));
  program_.tail_missing = true;
  intake_.builder().set_incomplete();
  program_.operations.push_back(
      {.launch = launch_,
       .line = line_,
       .extra = intake_.shared_extra({}, first_word(text).substr(0, kLongestNativeName)),
       .kind = OpKind::kOpaque,
       .flags = kOpGap});
}

void JobLineReader::read_foreign(std::uint32_t line) {
  line_ = line;
  ++index_;
  if (!is_after_exit()) unreadable("entry", "a line is a text");
}

void JobLineReader::read(std::string_view text, std::uint32_t line) {
  line_ = line;
  ++index_;
  text = trim(text);
  if (text.empty() || text.front() == '#') return;
  if (!is_after_exit()) read_marker_or_operation(text);
}

bool JobLineReader::is_after_exit() {
  if (exited_ && !warned_after_exit_) {
    warned_after_exit_ = true;
    warn("lines after exit are never reached: ignored");
  }
  return exited_;
}

void JobLineReader::read_marker_or_operation(std::string_view text) {
  for (const std::string_view opens : {"batch[", "batch_isend_irecv[", "group["}) {
    if (text.starts_with(opens)) return read_batch(text, opens.size());
  }
  const std::string_view word = first_word(text);
  const auto named = kind_from_native_name(word);
  if (!named) return read_operation(text);
  switch (named->kind) {
    case OpKind::kGroupStart:
      if (open_groups_++ == 0) launch_ = ++launches_;
      return;
    case OpKind::kGroupEnd:
      if (open_groups_ == 0) return warn("group_end without group_start: ignored");
      if (--open_groups_ == 0) launch_ = 0;
      return;
    case OpKind::kExit:
      return read_exit(trim(text.substr(word.size())));
    case OpKind::kCompute:
      return read_compute(trim(text.substr(word.size())));
    default:
      return read_operation(text);
  }
}

void JobLineReader::read_batch(std::string_view text, std::size_t opens) {
  if (text.back() != ']') return unreadable(text, "a batch ends in ']'");
  const std::string_view inside = text.substr(opens, text.size() - opens - 1);
  // A batch inside a group is launched with the group.
  if (open_groups_ == 0) launch_ = ++launches_;
  for (const std::string_view part : split<is_semicolon>(inside)) {
    if (part.starts_with("batch[")) {
      unreadable(part, "a batch inside a batch");
    } else {
      read_operation(part);
    }
  }
  if (open_groups_ == 0) launch_ = 0;
}

void JobLineReader::read_exit(std::string_view rest) {
  std::uint64_t status = 0;
  if (!rest.empty() && (!parse_unsigned(rest, status) || status > 255)) {
    warn(fmt::format("exit status {} is no number up to 255: taken as 0", excerpt(rest)));
    status = 0;
  }
  program_.operations.push_back({.line = line_, .kind = OpKind::kExit});
  program_.end = {EndKind::kExited, static_cast<int>(status)};
  exited_ = true;
}

void JobLineReader::read_compute(std::string_view text) {
  program_.operations.push_back(
      {.line = line_, .extra = intake_.shared_extra(unescape_word(text), {}), .kind = OpKind::kCompute});
}

void JobLineReader::read_operation(std::string_view text) {
  Draft draft{.words = split_words(text), .text = text};
  const std::string_view name = draft.words.empty() ? std::string_view{} : draft.words.front();
  const auto named = kind_from_native_name(name);
  if (!named || named->kind == OpKind::kUnknown) {
    return unreadable(text, fmt::format("{} is no operation", excerpt(name)));
  }
  const bool launches_graph = named->kind == OpKind::kGraphLaunch;
  if (op_class(named->kind) == OpClass::kMarker && !launches_graph) {
    return unreadable(text, fmt::format("{} cannot stand inside a batch", name));
  }
  draft.operation.kind = named->kind;
  draft.operation.line = line_;
  draft.operation.launch = op_class(named->kind) == OpClass::kCompletion || launches_graph ? 0 : launch_;
  if (named->nonblocking) draft.operation.flags |= kOpNonblocking;
  if (name != op_name(named->kind)) draft.native_name = name;
  if (read_positions(draft)) append(draft);
}

/// Sorts the words into positions and keys, and reads both; false: reported as unreadable.
bool JobLineReader::read_positions(Draft& draft) {
  std::vector<std::string_view> positions;
  for (std::size_t i = 1; i < draft.words.size(); ++i) {
    const std::string_view word = draft.words[i];
    const std::size_t equals = word.find_first_of("=[");
    if (equals != std::string_view::npos && word[equals] == '=') {
      read_key(draft, word.substr(0, equals), word.substr(equals + 1));
    } else {
      positions.push_back(word);
    }
  }
  draft.words = std::move(positions);
  if (!draft.group.empty()) {
    // Where a line names it: behind the peer of a message, else first.
    std::int32_t peer = kNoPeer;
    const bool is_message = is_point_to_point(draft.operation.kind) || op_class(draft.operation.kind) == OpClass::kCompletion;
    const bool behind_peer = is_message && !draft.words.empty() && parse_peer(draft.words.front(), peer);
    draft.words.insert(draft.words.begin() + (behind_peer ? 1 : 0), draft.group);
  }
  bool readable = true;
  const OpKind kind = draft.operation.kind;
  if (is_point_to_point(kind) || kind == OpKind::kProbe || kind == OpKind::kIprobe) {
    readable = read_message(draft);
  } else if (is_host_wait(kind) || kind == OpKind::kGraphLaunch) {
    read_stream_word(draft);
  } else if (op_class(kind) == OpClass::kCompletion) {
    readable = read_completion(draft);
  } else {
    readable = read_collective(draft);
  }
  if (readable && draft.next < draft.words.size()) {
    warn(fmt::format("does not expect {}: ignored", excerpt(draft.words[draft.next])));
  }
  return readable;
}

/// A name in its escaped form, or one that only looks escaped.
const LineGroups::Group* JobLineReader::find_group(std::string_view word) const {
  if (word.empty()) return nullptr;
  const LineGroups::Group* group = groups_.find(unescape_word(word));
  return group != nullptr ? group : groups_.find(word);
}

bool JobLineReader::read_collective(Draft& draft) {
  const LineGroups::Group* group = nullptr;
  const std::string_view word = draft.peek();
  if (word == "?") {
    draft.take();
  } else if ((group = find_group(word)) != nullptr) {
    draft.take();
  } else if (word.empty() || looks_like_type(word)) {
    group = groups_.for_collective();
    if (group == nullptr && is_collective(draft.operation.kind)) {
      unreadable(draft.text, "names no communicator, and there are several");
      return false;
    }
  } else {
    const std::string name = unescape_word(draft.take());
    if (!is_world_name(name)) {
      warn(fmt::format("group {} is not defined: its members are those that call it", excerpt(name)));
    }
    group = &groups_.find_or_make(name);
  }
  if (group != nullptr) draft.operation.comm = group->comm;
  if (looks_like_type(draft.peek())) read_type(draft, draft.take());
  check_ranks(draft, group);
  return true;
}

bool JobLineReader::read_message(Draft& draft) {
  std::int32_t peer = kNoPeer;
  if (parse_peer(draft.peek(), peer)) {
    draft.take();
    draft.operation.peer = peer;
  } else if (draft.operation.peer == kNoPeer) {
    unreadable(draft.text, "names no peer");
    return false;
  }
  const LineGroups::Group* group = find_group(draft.peek());
  if (draft.peek() == "?") {
    draft.take();
    group = nullptr;
  } else if (group != nullptr) {
    draft.take();
  } else {
    group = &groups_.for_message();
  }
  if (group != nullptr) draft.operation.comm = group->comm;
  if (looks_like_type(draft.peek())) read_type(draft, draft.take());
  if (!draft.peek().empty()) draft.operation.payload = intake_.builder().intern(unescape_word(draft.take()));
  check_ranks(draft, group);
  return true;
}

bool JobLineReader::read_completion(Draft& draft) {
  std::int32_t peer = kNoPeer;
  if (draft.peek().empty()) return true;
  if (parse_peer(draft.peek(), peer)) {
    draft.take();
    draft.operation.peer = peer;
    const LineGroups::Group* group = find_group(draft.peek());
    if (group != nullptr) {
      draft.take();
      draft.operation.comm = group->comm;
    }
    check_ranks(draft, group);
  } else {
    draft.operation.handle = intake_.builder().intern(unescape_word(draft.take()));
  }
  return true;
}

/// Calls on streams, events and graphs name no communicator. A word without a key is what the call is about: the stream of
/// `stream_sync`, the event or graph of the others, then the stream.
void JobLineReader::read_stream_word(Draft& draft) {
  Operation& operation = draft.operation;
  JobBuilder& builder = intake_.builder();
  const bool is_of_stream = operation.kind == OpKind::kStreamSync || operation.kind == OpKind::kDeviceSync;
  if (!is_of_stream && operation.handle == StringIndex{} && !draft.peek().empty()) {
    operation.handle = builder.intern(unescape_word(draft.take()));
  }
  const bool takes_stream = operation.kind != OpKind::kDeviceSync && operation.kind != OpKind::kEventSync;
  if (takes_stream && operation.stream == StringIndex{} && !draft.peek().empty()) {
    operation.stream = builder.intern(unescape_word(draft.take()));
  }
  if (!is_of_stream && operation.handle == StringIndex{}) {
    warn(fmt::format("{} names no {}: it has no effect", op_name(operation.kind),
                     operation.kind == OpKind::kGraphLaunch ? "graph (handle=)" : "event (handle=)"));
  }
}

/// "f32[1024]", "f32[V*h/tp]", "f32", "[12]".
bool JobLineReader::read_type(Draft& draft, std::string_view token) {
  const std::size_t bracket = token.find('[');
  const std::string_view type = token.substr(0, bracket);
  const std::string_view known = datatype_from_native_name(type);
  draft.operation.datatype =
      intake_.builder().datatype(known.empty() ? unescape_word(type) : std::string(known));
  if (bracket == std::string_view::npos) return true;
  const std::string_view count = trim(token.substr(bracket + 1, token.size() - bracket - 2));
  std::uint64_t number = 0;
  if (count.empty()) return true;
  if (parse_unsigned(count, number) && number <= Count::kMaxNumber) {
    draft.operation.count = Count::of(number);
  } else if (count.find_first_not_of("-0123456789.") == std::string_view::npos) {
    warn(fmt::format("count {} is no number from 0 to {}: left out", excerpt(count), Count::kMaxNumber));
    return false;
  } else {
    draft.operation.count = Count::symbol(intake_.builder().intern(unescape_word(count)));
  }
  return true;
}

void JobLineReader::check_ranks(const Draft& draft, const LineGroups::Group* group) {
  if (group == nullptr) return;
  const Operation& operation = draft.operation;
  if (!group->may_contain(program_.rank)) {
    warn(fmt::format("rank {} is no member of the communicator of {}", program_.rank, excerpt(draft.text)));
  }
  if (operation.peer >= 0 && !group->may_contain(operation.peer)) {
    warn(fmt::format("rank {} is no member of the communicator of {}", operation.peer, excerpt(draft.text)));
  }
}

}  // namespace lockstep
