// From JSONL call records to programs: whose call it is, on which communicator, and what is missing between two of them.
#include "read/jsonl_calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "read/job_line.h"
#include "read/json_outline.h"
#include "read/jsonl_record.h"
#include "read/native_names.h"
#include "read/site_text.h"

namespace lockstep {
namespace {

struct TextHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
};
template <class T>
using TextMap = std::unordered_map<std::string, T, TextHash, std::equal_to<>>;

struct LabelEntry {
  CommIndex comm = kNoComm;
  std::string ranks_text{};  ///< the list that the last record with this label had, as it stood there
};

struct RankState {
  Program program{};
  TextMap<LabelEntry> labels{};
  std::map<std::string, int> creations{};  ///< new_group calls so far, by members
  std::optional<std::int64_t> last_seq{};
  std::uint32_t last_line = 0;
  bool all_returned = true;
  bool repeats = false;  ///< a record came again
};

class JsonlCallsReader {
 public:
  JsonlCallsReader(const EvidenceFile& file, JobIntake& intake)
      : file_(file), intake_(intake), warnings_(intake.builder(), file.path),
        source_(intake.builder().source(file.path)) {}

  Result<std::size_t> read();

 private:
  void read_line(std::string_view text, bool is_cut);
  RankState& state_of(std::int32_t rank);
  bool check_sequence(RankState& state, const JsonlRecord& record);
  void add_operation(RankState& state, const JsonlRecord& record);
  CommIndex communicator_of(RankState& state, const JsonlRecord& record);
  CommIndex communicator_without_creation(const JsonlRecord& record, bool has_members);
  void add_creation(RankState& state, const JsonlRecord& record, Operation& operation);
  std::int32_t peer_of(const JsonlRecord& record, const Operation& operation);
  SiteIndex site_of(const JsonlRecord& record);
  void finish(RankState& state);

  const EvidenceFile& file_;
  JobIntake& intake_;
  FileWarnings warnings_;
  SourceIndex source_;
  JsonlRecordParser parser_;
  std::uint32_t line_ = 0;
  std::uint32_t last_bad_line_ = 0;
  std::map<std::int32_t, RankState> states_;
  RankState* last_state_ = nullptr;
  TextMap<SiteIndex> sites_;              // by the JSON text of the stack
  std::unordered_set<std::uint64_t> checked_peers_;  // communicator and peer
  std::vector<std::int32_t> members_;     // of the record being read
  std::vector<std::string> frames_;
};

Result<std::size_t> JsonlCallsReader::read() {
  std::string_view rest = file_.contents;
  if (rest.starts_with("\xef\xbb\xbf")) rest.remove_prefix(3);
  while (!rest.empty()) {
    ++line_;
    const std::size_t end = rest.find('\n');
    read_line(rest.substr(0, end), end == std::string_view::npos);
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  }
  if (states_.empty()) {
    return Error{ErrorCode::kMalformed, fmt::format("{}:{}: no line is a call record", file_.path, line_)};
  }
  for (auto& [rank, state] : states_) finish(state);
  return states_.size();
}

void JsonlCallsReader::read_line(std::string_view text, bool is_cut) {
  if (text.find_first_not_of(" \t\r") == std::string_view::npos) return;
  JsonlRecord record;
  if (const std::string_view problem = parser_.parse(text, record); !problem.empty()) {
    warnings_.warn(line_, fmt::format("{}{}: no call record", is_cut ? "the last line, cut short, " : "", problem));
    last_bad_line_ = line_;
    return;
  }
  RankState& state = state_of(static_cast<std::int32_t>(*record.rank));
  if (check_sequence(state, record)) add_operation(state, record);
}

RankState& JsonlCallsReader::state_of(std::int32_t rank) {
  if (last_state_ != nullptr && last_state_->program.rank == rank) return *last_state_;
  const auto [at, added] = states_.try_emplace(rank);
  last_state_ = &at->second;
  if (added) {
    at->second.program = {.rank = rank, .source = source_};
    intake_.add_to_world({{rank}});
  }
  return *last_state_;
}

/// False: the record is to be ignored.
bool JsonlCallsReader::check_sequence(RankState& state, const JsonlRecord& record) {
  const std::uint32_t previous_line = std::exchange(state.last_line, line_);
  if (!record.seq) {
    // Nothing tells whether an unreadable line took a call with it.
    if (last_bad_line_ > previous_line) state.program.tail_missing = true;
    return true;
  }
  const std::int64_t seq = *record.seq;
  if (!state.last_seq) {
    state.last_seq = seq;
    if (seq <= 1) return true;
    state.program.head_missing = true;
    intake_.builder().set_incomplete();
    warnings_.warn(line_, fmt::format("rank {} begins with call {}: those before are missing", *record.rank, seq));
    return true;
  }
  if (seq <= *state.last_seq) {
    if (!state.repeats) {
      warnings_.warn(line_, fmt::format("rank {} has call {} again: ignored, as all that come twice", *record.rank, seq));
    }
    state.repeats = state.program.tail_missing = true;
    return false;
  }
  if (seq - 1 != *state.last_seq) {
    warnings_.warn(line_, fmt::format("rank {}: call {} follows call {}: those between are missing", *record.rank, seq,
                                      *state.last_seq));
    state.program.tail_missing = true;
    state.program.operations.push_back({.line = line_,
                                        .extra = intake_.shared_extra("missing from the record", {}),
                                        .kind = OpKind::kOpaque,
                                        .flags = kOpGap});
  }
  state.last_seq = seq;
  return true;
}

void JsonlCallsReader::add_operation(RankState& state, const JsonlRecord& record) {
  JobBuilder& builder = intake_.builder();
  const auto named = kind_from_native_name(record.op);
  Operation operation{.line = line_, .kind = named ? named->kind : OpKind::kOpaque};
  if (!named) warnings_.warn(line_, fmt::format("op {} is not known", excerpt(record.op)));
  const std::string_view native_name =
      record.op == op_name(operation.kind) ? std::string_view{} : record.op.substr(0, 64);
  operation.extra = intake_.shared_extra(record.phase, native_name);
  operation.site = site_of(record);
  if (record.is_async || (named && named->nonblocking)) operation.flags |= kOpNonblocking;
  if (record.completed) {
    operation.state = !*record.completed          ? OpState::kEntered
                      : operation.nonblocking() ? OpState::kEnqueued
                                                : OpState::kCompleted;
  }
  state.all_returned = state.all_returned && record.completed.value_or(false);
  if (record.count) {
    if (*record.count >= 0) {
      operation.count = Count::of(static_cast<std::uint64_t>(*record.count));
    } else {
      warnings_.warn(line_, fmt::format("numel {} is less than 0: left out", *record.count));
    }
  }
  const std::string_view dtype = datatype_from_native_name(record.dtype);
  operation.datatype = builder.datatype(dtype.empty() ? record.dtype : dtype);
  const std::string_view redop = redop_from_native_name(record.redop);
  operation.redop = builder.redop(redop.empty() ? record.redop : redop);
  if (record.tag && *record.tag >= 0 && *record.tag < kAnyTag) operation.tag = static_cast<std::uint32_t>(*record.tag);
  if (operation.kind == OpKind::kNewGroup) {
    add_creation(state, record, operation);
  } else {
    operation.comm = communicator_of(state, record);
    operation.peer = peer_of(record, operation);
  }
  state.program.operations.push_back(operation);
}

std::int32_t JsonlCallsReader::peer_of(const JsonlRecord& record, const Operation& operation) {
  const auto value = record.peer ? record.peer : record.root;
  if (!value) return is_receive(operation.kind) ? kAnyPeer : kNoPeer;  // torch: recv without a source takes any
  if (*value < 0 || *value > 0x7fffffff) {
    warnings_.warn(line_, fmt::format("{} is no rank: left out", *value));
    return kNoPeer;
  }
  const auto peer = static_cast<std::int32_t>(*value);
  const Communicator& comm = intake_.builder().communicator(operation.comm);
  // Each pair is looked for once: the members of a large group are no set.
  const std::uint64_t pair = (static_cast<std::uint64_t>(operation.comm) << 32) | static_cast<std::uint32_t>(peer);
  if (comm.members_known && checked_peers_.insert(pair).second && !std::ranges::count(comm.members, peer)) {
    warnings_.warn(line_, fmt::format("rank {} is no member of {}", peer, excerpt(comm.name)));
  }
  return peer;
}

/// A new_group call: a collective on the world that gives its label a meaning.
void JsonlCallsReader::add_creation(RankState& state, const JsonlRecord& record, Operation& operation) {
  JobBuilder& builder = intake_.builder();
  operation.comm = intake_.world();
  members_.clear();
  if (!record.ranks.empty() && !parser_.parse_ranks(record.ranks, members_)) {
    warnings_.warn(line_, "ranks is no list of ranks: left out");
  }
  intake_.add_to_world(members_);
  const std::vector<std::int32_t> passed = members_;
  if (drop_repeated(members_)) warnings_.warn(line_, "a rank is listed twice: used once");
  std::vector<std::int32_t> sorted = members_;
  std::ranges::sort(sorted);
  const std::string members = sorted.empty() ? "world" : members_text(sorted);
  const int number = ++state.creations[members];
  const std::string label = record.group.empty() ? fmt::format("[{}]#{}", members, number) : std::string(record.group);
  const CommIndex made = builder.communicator(fmt::format("[{}]#{}", members, number), label, members_);
  state.labels.insert_or_assign(label, LabelEntry{made, std::string(record.ranks)});
  const OperationExtra& shared = builder.extra_of(operation);
  operation.extra = builder.extra({.members = passed, .label = shared.label, .native_name = shared.native_name});
}

CommIndex JsonlCallsReader::communicator_of(RankState& state, const JsonlRecord& record) {
  const std::string_view label = record.group.empty() ? JobIntake::kWorldName : record.group;
  const auto known = state.labels.find(label);
  if (known != state.labels.end() && (record.ranks.empty() || known->second.ranks_text == record.ranks)) {
    return known->second.comm;
  }
  const bool has_members = !record.ranks.empty() && parser_.parse_ranks(record.ranks, members_) && !members_.empty();
  if (has_members && drop_repeated(members_)) warnings_.warn(line_, "a rank is listed twice: used once");
  if (known != state.labels.end()) {
    if (!has_members) return known->second.comm;
    const auto& before = intake_.builder().communicator(known->second.comm).members;
    if (before.empty() || std::ranges::is_permutation(before, members_)) {
      known->second.ranks_text = record.ranks;
      return known->second.comm;
    }
    warnings_.warn(line_, fmt::format("{} has members [{}] here and [{}] before", excerpt(label), members_text(members_),
                                      members_text(before)));
  }
  const CommIndex comm = communicator_without_creation(record, has_members);
  state.labels.insert_or_assign(std::string(label), LabelEntry{comm, std::string(record.ranks)});
  return comm;
}

CommIndex JsonlCallsReader::communicator_without_creation(const JsonlRecord& record, bool has_members) {
  if (!has_members) members_.clear();
  if (record.group.empty() || is_world_name(record.group)) {
    if (!has_members) return intake_.world();
    intake_.add_to_world(members_);
    return intake_.communicator(JobIntake::kWorldName, JobIntake::kWorldName, members_,
                                fmt::format("{}:{}", file_.path, line_));
  }
  intake_.add_to_world(members_);
  return intake_.builder().communicator(fmt::format("{}[{}]", record.group, members_text(members_)), record.group,
                                        members_);
}

/// Innermost frame first, as the record has them; the single frame of `site` where there is no stack. `site` is the first
/// frame that is no wrapper of the call: those inside it say nothing.
SiteIndex JsonlCallsReader::site_of(const JsonlRecord& record) {
  const std::string_view text = record.stack.size() > 2 ? record.stack : record.site;
  if (text.empty()) return SiteIndex{};
  if (const auto known = sites_.find(text); known != sites_.end()) return known->second;
  CallSite site;
  if (record.stack.size() > 2 && parser_.parse_strings(record.stack, frames_)) {
    constexpr std::size_t kMostFrames = 64;
    const auto named = std::ranges::find(frames_, record.site);
    for (auto frame = named == frames_.end() ? frames_.begin() : named; frame != frames_.end(); ++frame) {
      if (site.frames.size() == kMostFrames) break;
      site.frames.push_back(parse_colon_frame(*frame));
    }
  } else if (!record.site.empty()) {
    site.frames.push_back(parse_colon_frame(record.site));
  }
  return sites_.emplace(std::string(text), intake_.builder().site(site)).first->second;
}

void JsonlCallsReader::finish(RankState& state) {
  if (last_bad_line_ > state.last_line) state.program.tail_missing = true;
  if (state.program.tail_missing) intake_.builder().set_incomplete();
  const bool ended = state.all_returned && !state.program.tail_missing;
  state.program.end = ended ? ProgramEnd{EndKind::kExited, ProgramEnd::kStatusUnknown} : ProgramEnd{};
  intake_.add_program(std::move(state.program));
}

}  // namespace

bool looks_like_jsonl_calls(std::string_view head) {
  // The first lines may be damaged or belong to something else.
  constexpr int kLinesToLookAt = 20;
  for (int i = 0; i < kLinesToLookAt && !head.empty(); ++i) {
    const std::size_t end = head.find('\n');
    const std::vector<OutlineKey> keys = outline_keys(head.substr(0, end));
    const auto has = [&keys](std::string_view name) { return std::ranges::find(keys, name, &OutlineKey::name) != keys.end(); };
    // A line that goes on past the head may have its "op" after a very long list.
    if (has("rank") && (has("op") || end == std::string_view::npos)) return true;
    head.remove_prefix(end == std::string_view::npos ? head.size() : end + 1);
  }
  return false;
}

Result<std::size_t> read_jsonl_calls(const EvidenceFile& file, JobIntake& intake) {
  intake.set_library(Library::kTorch, file.path);
  return JsonlCallsReader(file, intake).read();
}

}  // namespace lockstep
