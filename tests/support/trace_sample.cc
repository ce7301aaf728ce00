#include "support/trace_sample.h"

#include <array>
#include <cstring>

namespace lockstep::testing {
namespace {

using namespace lockstep::trace;

constexpr std::uint64_t kSideBytes = 4096;
constexpr std::uint32_t kEntries = 4;  // communicators beyond have no entry
constexpr std::array<const char*, 3> kTypes = {"", "MPI_FLOAT", "MPI_INT"};
constexpr std::array<const char*, 3> kOps = {"", "MPI_SUM", "MPI_MAX"};

std::uint64_t hash_of(const char* name) { return *name == '\0' ? 0 : text_hash(name, std::strlen(name)); }

template <class T>
void append(std::string& bytes, const T& value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

}  // namespace

TraceSample::TraceSample(const TraceSampleOptions& options) : options_(options) {
  header_.magic = kMagic;
  header_.version = kVersion;
  header_.min_reader = kMinReader;
  header_.header_bytes = kHeaderBytes;
  header_.record_bytes = kRecordBytes;
  header_.comm_table_offset = kHeaderBytes;
  header_.comm_entry_bytes = sizeof(CommEntry);
  header_.comm_entry_count = kEntries;
  header_.side_offset = header_.comm_table_offset + kEntries * sizeof(CommEntry);
  header_.side_bytes = kSideBytes;
  header_.ring_offset = header_.side_offset + kSideBytes;
  header_.block_bytes = options.block_bytes;
  header_.block_count = options.blocks;
  header_.file_bytes = header_.ring_offset + std::uint64_t{options.blocks} * options.block_bytes;
  header_.ticks_per_second = 1'000'000'000;
  header_.pid = 1;  // of no process that a test could meet: `host` is no host
  header_.start_unix_ns = header_.created_unix_ns = options.start_unix_ns;
  header_.start_ticks = header_.created_ticks = ticks_;
  header_.job_rank = options.rank;
  header_.job_ranks = options.ranks;
  ring_.resize(std::size_t{options.blocks} * options.block_bytes);
  sends_.resize(static_cast<std::size_t>(options.ranks));
  receives_.resize(static_cast<std::size_t>(options.ranks));
  using namespace std::string_literals;
  add_side(ProcessRecord{.header = {}, .env_rank = options.rank, .env_ranks = options.ranks, .start_unix_ns = options.start_unix_ns},
           SideKind::kProcess, "no.such.host\0program\0"s + options.run + "\0test\0"s + "0\0/\0"s);
  for (std::uint32_t id = 1; id < kTypes.size(); ++id) {
    add_side(NamedRecord{.header = {}, .id = id, .bytes = 4, .hash = hash_of(kTypes[id])}, SideKind::kDatatype, kTypes[id] + "\0"s);
    add_side(NamedRecord{.header = {}, .id = id, .bytes = 0, .hash = hash_of(kOps[id])}, SideKind::kRedop, kOps[id] + "\0"s);
  }
  std::vector<std::int32_t> all(static_cast<std::size_t>(options.ranks));
  for (int i = 0; i < options.ranks; ++i) all[static_cast<std::size_t>(i)] = i;
  add_comm(all, 0, "MPI_COMM_WORLD");
}

std::uint32_t TraceSample::add_comm(const std::vector<std::int32_t>& members, std::uint32_t creation, const std::string& name) {
  const auto id = static_cast<std::uint32_t>(comms_.size() + 1);
  CommRecord record{.header = {}, .comm = id, .creation = creation, .nranks = static_cast<std::int32_t>(members.size())};
  std::uint64_t hash = 0;
  std::string tail;
  for (std::size_t i = 0; i < members.size(); ++i) {
    hash = mix(hash ^ static_cast<std::uint64_t>(members[i]), i + 1);
    if (members[i] == options_.rank) record.rank = static_cast<std::int32_t>(i);
  }
  record.identity = mix(hash, creation + 1);
  for (std::size_t i = 0; i < members.size();) {  // runs of neighbours
    std::size_t to = i + 1;
    while (to < members.size() && members[to] == members[to - 1] + 1) ++to;
    append(tail, RankRange{members[i], 1, static_cast<std::uint32_t>(to - i)});
    ++record.ranges;
    i = to;
  }
  record.kind = static_cast<std::uint8_t>(id == 1 ? OpKind::kInit : OpKind::kSplit);
  add_side(record, SideKind::kCommunicator, tail + name + '\0');
  comms_.push_back({});
  comms_.back().entry.comm = id;
  return id;
}

std::uint32_t TraceSample::add_nccl_comm(std::uint64_t identity, std::int32_t nranks, std::uint32_t parent, OpKind kind, std::uint64_t alias) {
  const auto id = static_cast<std::uint32_t>(comms_.size() + 1);
  CommRecord record{.header = {}, .comm = id, .parent = parent, .identity = identity, .rank = options_.rank, .nranks = nranks, .device = 0,
                    .library = Library::kNccl, .kind = static_cast<std::uint8_t>(kind)};
  add_side(record, SideKind::kCommunicator, std::string(1, '\0'));
  if (alias != 0) add_side(CommAliasRecord{.header = {}, .comm = id, .identity = alias}, SideKind::kCommAlias, "");
  comms_.push_back({});
  comms_.back().entry.comm = id;
  return id;
}

template <class Record>
void TraceSample::add_side(Record record, SideKind kind, const std::string& tail) {
  record.header = {kSideMagic, kind, kSideCommitted, static_cast<std::uint32_t>(sizeof record + tail.size())};
  append(side_, record);
  side_ += tail;
  side_.resize((side_.size() + 63) / 64 * 64);
  header_.side_used = side_.size();
}

void TraceSample::put_block() {
  ++block_;
  record_ = 0;
  header_.blocks_opened = block_;
  BlockRecord record{.anchor_ticks = ticks_, .anchor_unix_ns = options_.start_unix_ns + ticks_ - 1'000'000, .number = block_};
  record.kind = static_cast<std::uint8_t>(RecordKind::kBlock);
  put(record);
}

template <class Record>
void TraceSample::put(Record record) {
  record.commit = static_cast<std::uint32_t>(block_);
  const std::size_t slot = (block_ - 1) % options_.blocks;
  std::memcpy(ring_.data() + slot * options_.block_bytes + std::size_t{record_} * kRecordBytes, &record, sizeof record);
  ++record_;
}

void TraceSample::advance(CallRecord& record) {
  const auto kind = static_cast<OpKind>(record.kind);
  CommEntry& entry = comms_[record.comm - 1].entry;
  const Checkpoint& before = entry.now[entry.now[1].calls > entry.now[0].calls ? 1 : 0];
  const bool counted = op_class(kind) == OpClass::kCollective;
  const std::uint64_t shape = std::uint64_t{record.kind} |
                              (has_root(kind) ? static_cast<std::uint64_t>(record.peer + 1) << 32 : 0);
  const std::uint64_t s = signature(shape, counted ? record.count : 0, counted ? hash_of(kTypes[record.datatype]) : 0,
                                    has_reduction(kind) ? hash_of(kOps[record.redop]) : 0);
  const std::uint64_t calls = before.calls + 1;
  record.seq = static_cast<std::uint32_t>(before.calls);
  record.detail = trace::advance(before.fingerprint, s, calls);
  entry.now[calls % 2] = {record.detail, calls};
  for (std::uint32_t level = 0; level < kLevels; ++level) {
    const std::uint64_t step = std::uint64_t{1} << (kFirstLevel + level);
    if (calls % step != 0) break;
    if (calls == step) entry.first[level] = record.detail;
    entry.latest[level][(calls >> (kFirstLevel + level)) & 1] = {record.detail, calls};
  }
}

void TraceSample::add(const SampleCall& call) { add_call(call, 0); }

void TraceSample::add(const SampleCall& call, const IssueRecord& issue) {
  add_call(call, 1);
  IssueRecord record = issue;
  record.kind = static_cast<std::uint8_t>(RecordKind::kIssue);
  put(record);
}

void TraceSample::add(const SampleCall& call, const CreationRecord& creation) {
  add_call(call, 1);
  CreationRecord record = creation;
  record.kind = static_cast<std::uint8_t>(RecordKind::kCreation);
  put(record);
}

void TraceSample::add_all_to_all(const std::vector<std::uint64_t>& sent, const std::vector<std::uint64_t>& received) {
  add_call({.kind = OpKind::kAllToAllV, .datatype = 1}, 2);
  put_counts(sent, 0);
  put_counts(received, 1);
}

void TraceSample::put_counts(const std::vector<std::uint64_t>& counts, std::uint8_t side) {
  CountsRecord record{.members = static_cast<std::uint32_t>(counts.size()), .kind = static_cast<std::uint8_t>(RecordKind::kCounts),
                      .side = side, .datatype = 1};
  for (std::size_t i = 0; i < counts.size(); ++i) {
    record.hash = mix(record.hash ^ counts[i], i + 1);
    record.total += counts[i];
    if (i < std::size(record.counts)) record.counts[i] = counts[i];
  }
  if (counts.size() > std::size(record.counts)) {
    record.vector = ++vectors_;
    std::string tail;
    for (const std::uint64_t count : counts) append(tail, count);
    add_side(VectorRecord{.header = {}, .vector = record.vector, .values = record.members, .hash = record.hash}, SideKind::kVector, tail);
  }
  put(record);
}

void TraceSample::add_call(const SampleCall& call, std::uint8_t extensions) {
  const std::uint32_t records = options_.block_bytes / kRecordBytes;
  if (block_ == 0 || record_ + extensions >= records) put_block();
  CallRecord record{.count = call.count, .detail = call.request, .comm = call.comm, .peer = call.peer,
                    .datatype = call.datatype, .redop = call.redop, .kind = static_cast<std::uint8_t>(call.kind),
                    .flags = call.flags, .extensions = extensions, .aux = call.tag};
  record.enter_ticks = ticks_ += 1000;
  if (call.returned) record.return_ticks = ticks_ += 1000;
  if (is_collective(call.kind) && call.comm != 0) {
    advance(record);
    record.aux = call.request != 0 ? call.request : call.tag;
  } else if (is_point_to_point(call.kind) && call.peer >= 0) {
    auto& counts = is_send(call.kind) ? sends_ : receives_;
    record.seq = counts[static_cast<std::size_t>(call.peer)]++;
  } else {
    record.seq = kNoPosition;
  }
  put(record);
}

void TraceSample::add_opaque(const std::string& function) {
  const std::uint32_t records = options_.block_bytes / kRecordBytes;
  if (block_ == 0 || record_ + 1 >= records) put_block();
  CallRecord record{.kind = static_cast<std::uint8_t>(OpKind::kOpaque), .extensions = 1};
  record.enter_ticks = ticks_ += 1000;
  record.return_ticks = ticks_ += 1000;
  put(record);
  NameRecord name;
  std::memcpy(name.name, function.data(), std::min(function.size(), sizeof name.name - 1));
  name.kind = static_cast<std::uint8_t>(RecordKind::kName);
  put(name);
}

void TraceSample::finish(int status) {
  add({.kind = OpKind::kFinalize});
  header_.finalized = 2;
  header_.end = ProcessEnd::kExited;
  header_.exit_status = status;
  header_.end_ticks = ticks_;
}

std::string TraceSample::bytes() const {
  std::string bytes;
  bytes.reserve(header_.file_bytes);
  append(bytes, header_);
  for (std::size_t i = 0; i < kEntries; ++i) append(bytes, i < comms_.size() ? comms_[i].entry : CommEntry{});
  bytes += side_;
  bytes.resize(header_.ring_offset);
  return bytes + ring_;
}

}  // namespace lockstep::testing
