// See the header.
#include "read/trace_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <system_error>

#include "read/trace_bytes.h"

namespace lockstep {
namespace {

using trace::CommEntry;
using trace::FileHeader;
using trace::SideHeader;
using trace::SideKind;

constexpr std::size_t kHeaderFields = offsetof(FileHeader, unused);

/// "NCCL 2.28.9" as NCCL's own number, 22809 (2.8.3 and before: 2803); 0 for anything else.
int nccl_version_code(std::string_view text) {
  int parts[3] = {};
  const std::size_t space = text.find(' ');
  if (space == std::string_view::npos) return 0;
  const char* at = text.data() + space + 1;
  const char* const end = text.data() + text.size();
  for (int& part : parts) {
    const auto [next, error] = std::from_chars(at, end, part);
    if (error != std::errc{} || part < 0 || part > 99) return 0;
    at = next != end ? next + 1 : next;
  }
  const bool old = parts[0] <= 2 && parts[1] <= 8;
  return parts[0] * (old ? 1000 : 10000) + parts[1] * 100 + parts[2];
}

/// Fills TraceTables from the side area and the communicator table.
class TableReader {
 public:
  TableReader(TraceTables& tables, std::string_view contents)
      : tables_(tables), bytes_(contents),
        // What a header says is not yet there: a short file may claim a large area.
        most_ids_(std::min<std::uint64_t>(tables.header.side_bytes, contents.size()) / 64 + 1) {}

  void read() {
    read_side();
    read_comm_table();
    for (TraceComm& comm : tables_.comms) {
      std::ranges::sort(comm.checkpoints, {}, &trace::Checkpoint::calls);
    }
  }

 private:
  /// Entry `id` of a table, made where it is new; nullptr for an id that no file of this size can have.
  template <class T>
  T* entry(std::vector<T>& table, std::uint64_t id) {
    if (id == 0 || id > most_ids_) return nullptr;
    if (id >= table.size()) table.resize(id + 1);
    return &table[id];
  }

  void read_side() {
    const FileHeader& header = tables_.header;
    const std::uint64_t used = std::min(header.side_used, header.side_bytes);
    for (std::uint64_t at = 0; at < used;) {
      const std::uint64_t here = header.side_offset + at;
      if (!bytes_.has(here, 8)) {
        tables_.side_damaged = true;
        return;
      }
      if (bytes_.acquire<std::uint64_t>(here) == 0) {
        at += 64;
        continue;
      }
      const auto head = bytes_.get<SideHeader>(here);
      if (head.magic != trace::kSideMagic || head.bytes < sizeof head || head.bytes > header.side_bytes - at) {
        tables_.side_damaged = true;
        return;
      }
      if (head.state == trace::kSideCommitted) read_record(head.kind, here, here + head.bytes);
      at += (std::uint64_t{head.bytes} + 63U) / 64 * 64;
    }
  }

  void read_record(SideKind kind, std::uint64_t at, std::uint64_t end) {
    switch (kind) {
      case SideKind::kProcess:
        read_process(at, end);
        break;
      case SideKind::kCommunicator:
        read_communicator(at, end);
        break;
      case SideKind::kCommEnd:
        read_comm_end(at);
        break;
      case SideKind::kCommAlias: {
        const auto record = bytes_.get<trace::CommAliasRecord>(at);
        const TraceComm* comm = entry(tables_.comms, record.comm);
        if (comm != nullptr && comm->known() && record.identity != 0 && comm->record.identity != 0)
          tables_.aliases.emplace_back(record.identity, comm->record.identity);
        break;
      }
      case SideKind::kDatatype:
        read_named(tables_.datatypes, at, end);
        break;
      case SideKind::kRedop:
        read_named(tables_.redops, at, end);
        break;
      case SideKind::kCallSite: {
        const auto record = bytes_.get<trace::CallSiteRecord>(at);
        if (TraceSite* site = entry(tables_.sites, record.site)) {
          site->module = record.module;
          site->file_offset = record.file_offset;
          site->address = record.address;
        }
        break;
      }
      case SideKind::kModule:
        read_module(at, end);
        break;
      case SideKind::kNote:
      case SideKind::kCommName:
      case SideKind::kLibrary:
        read_text(kind, at, end);
        break;
      case SideKind::kPythonSite:
        read_python_site(at, end);
        break;
      case SideKind::kVector:
        read_vector(at, end);
        break;
    }
  }

  void read_process(std::uint64_t at, std::uint64_t end) {
    tables_.process = bytes_.get<trace::ProcessRecord>(at);
    at += sizeof(trace::ProcessRecord);
    for (std::string* text : {&tables_.host, &tables_.program, &tables_.run, &tables_.launcher}) {
      *text = bytes_.text(at, end);
    }
  }

  void read_communicator(std::uint64_t at, std::uint64_t end) {
    const auto record = bytes_.get<trace::CommRecord>(at);
    at += sizeof record;
    const std::uint64_t ranges_end = at + (std::uint64_t{record.ranges} + record.remote_ranges) * sizeof(trace::RankRange);
    TraceComm* comm = entry(tables_.comms, record.comm);
    if (comm == nullptr || ranges_end > end) return;
    // A later record says what was not known when the first was written.
    comm->record = record;
    comm->ranges.clear();
    for (std::uint32_t i = 0; i < record.ranges; ++i) {
      comm->ranges.push_back(bytes_.get<trace::RankRange>(at + i * sizeof(trace::RankRange)));
    }
    at = ranges_end;
    std::string name = bytes_.text(at, end);
    if (comm->name.empty()) comm->name = std::move(name);
  }

  void read_comm_end(std::uint64_t at) {
    const auto record = bytes_.get<trace::CommEndRecord>(at);
    TraceComm* comm = entry(tables_.comms, record.comm);
    if (comm == nullptr) return;
    comm->has_state = true;
    comm->flags = record.flags;
    comm->now = {record.fingerprint, record.calls};
  }

  void read_named(std::vector<TraceNamed>& table, std::uint64_t at, std::uint64_t end) {
    const auto record = bytes_.get<trace::NamedRecord>(at);
    at += sizeof record;
    if (TraceNamed* named = entry(table, record.id)) *named = {bytes_.text(at, end), record.hash, record.bytes};
  }

  void read_module(std::uint64_t at, std::uint64_t end) {
    const auto record = bytes_.get<trace::ModuleRecord>(at);
    at += sizeof record;
    TraceModule* module = entry(tables_.modules, record.module);
    if (module == nullptr || record.build_id_bytes > end - std::min(at, end)) return;
    module->build_id.assign(bytes_.data(at), record.build_id_bytes);
    at += record.build_id_bytes;
    module->path = bytes_.text(at, end);
  }

  void read_vector(std::uint64_t at, std::uint64_t end) {
    const auto record = bytes_.get<trace::VectorRecord>(at);
    at += sizeof record;
    if (at > end || record.values > (end - at) / sizeof(std::uint64_t) || !bytes_.has(at, record.values * sizeof(std::uint64_t))) return;
    if (TraceVector* vector = entry(tables_.vectors, record.vector)) *vector = {at, record.values};
  }

  void read_text(SideKind kind, std::uint64_t at, std::uint64_t end) {
    const auto record = bytes_.get<trace::TextRecord>(at);
    at += sizeof record;
    std::string text = bytes_.text(at, end);
    constexpr std::size_t kMostNotes = 16;
    if (kind == SideKind::kNote && record.subject == trace::kNoteImplicitLaunchOrder) {
      tables_.implicit_launch_order = !text.empty() && text != "0";
      return;
    }
    if (kind == SideKind::kNote && record.subject == trace::kNoteDevice) {
      tables_.uses_device = true;
      return;
    }
    if (kind == SideKind::kLibrary && record.subject == static_cast<std::uint32_t>(trace::Library::kNccl)) {
      tables_.nccl_version = nccl_version_code(text);
      return;
    }
    if (kind == SideKind::kNote && tables_.notes.size() < kMostNotes) tables_.notes.push_back(std::move(text));
    else if (kind == SideKind::kLibrary) tables_.library = std::move(text);
    else if (TraceComm* comm = kind == SideKind::kCommName ? entry(tables_.comms, record.subject) : nullptr) {
      if (text != "undefined") comm->name = std::move(text);  // what torch calls a group without a description
    }
  }

  void read_python_site(std::uint64_t at, std::uint64_t end) {
    const auto record = bytes_.get<trace::PythonSiteRecord>(at);
    at += sizeof record;
    TraceSite* site = entry(tables_.sites, record.site);
    if (site == nullptr) return;
    constexpr std::uint32_t kMostFrames = 64;
    for (std::uint32_t i = 0; i < std::min(record.frames, kMostFrames) && at + 4 < end; ++i) {
      Frame frame{.line = bytes_.get<std::uint32_t>(at)};
      at += 4;
      frame.file = bytes_.text(at, end);
      frame.function = bytes_.text(at, end);
      site->python.push_back(std::move(frame));
    }
  }

  void read_comm_table() {
    const FileHeader& header = tables_.header;
    for (std::uint32_t i = 0; i < header.comm_entry_count; ++i) {
      const std::uint64_t at = header.comm_table_offset + std::uint64_t{i} * header.comm_entry_bytes;
      if (!bytes_.has(at, sizeof(CommEntry))) break;  // the header may claim billions that a cut file does not have
      const auto id = bytes_.acquire<std::uint32_t>(at);
      if (id == 0) continue;
      const auto table_entry = bytes_.get<CommEntry>(at);
      TraceComm* comm = entry(tables_.comms, id);
      if (comm == nullptr || bytes_.get<std::uint32_t>(at) != id) continue;
      comm->has_state = true;
      comm->flags = table_entry.flags;
      comm->now = table_entry.now[table_entry.now[1].calls > table_entry.now[0].calls ? 1 : 0];
      comm->checkpoints.clear();
      add_checkpoints(table_entry, *comm);
    }
  }

  static void add_checkpoints(const CommEntry& table_entry, TraceComm& comm) {
    for (std::uint32_t level = 0; level < trace::kLevels; ++level) {
      const std::uint64_t step = std::uint64_t{1} << (trace::kFirstLevel + level);
      if (table_entry.first[level] != 0) comm.checkpoints.push_back({table_entry.first[level], step});
      for (const trace::Checkpoint& latest : table_entry.latest[level]) {
        if (latest.calls != 0 && latest.calls % step == 0) comm.checkpoints.push_back(latest);
      }
    }
  }

  TraceTables& tables_;
  const TraceBytes bytes_;
  const std::uint64_t most_ids_;
};

Error malformed(std::string_view path, std::string_view what) {
  return {ErrorCode::kMalformed, fmt::format("{}: {}", path, what)};
}

/// A section of `size` bytes must lie behind the header, and its beginning inside the file.
bool is_section(const TraceTables& tables, std::uint64_t offset, std::uint64_t size) {
  const std::uint64_t file = std::max<std::uint64_t>(tables.header.file_bytes, tables.contents.size());
  return offset >= tables.header.header_bytes && offset % 8 == 0 && offset <= file && size <= file - offset;
}

}  // namespace

bool looks_like_trace(std::string_view head) {
  return head.size() >= 8 && TraceBytes(head).get<std::uint64_t>(0) == trace::kMagic;
}

Result<TraceTables> read_trace_tables(std::string_view path, std::string_view contents) {
  const TraceBytes bytes(contents);
  if (!looks_like_trace(contents)) return malformed(path, "is no Lockstep trace: the first eight bytes differ");
  TraceTables tables{.path = std::string(path), .contents = contents};
  FileHeader& header = tables.header;
  if (contents.size() < kHeaderFields) return malformed(path, fmt::format("is cut inside its header, after {} bytes", contents.size()));
  std::memcpy(static_cast<void*>(&header), contents.data(), kHeaderFields);
  if (header.min_reader > trace::kVersion) {
    return Error{ErrorCode::kUnsupported,
                 fmt::format("{}: is a trace of format version {} and needs a reader of version {} or later; this program reads "
                             "versions 1 to {}",
                             path, header.version, header.min_reader, trace::kVersion)};
  }
  if (header.version == 0) return malformed(path, "has no format version");
  if (header.record_bytes != trace::kRecordBytes) {
    return malformed(path, fmt::format("says that its records have {} bytes, not {}", header.record_bytes, trace::kRecordBytes));
  }
  const std::uint64_t table_bytes = std::uint64_t{header.comm_entry_bytes} * header.comm_entry_count;
  const std::uint64_t ring_bytes = std::uint64_t{header.block_bytes} * header.block_count;
  const bool fits = header.header_bytes >= kHeaderFields && is_section(tables, header.comm_table_offset, table_bytes) &&
                    is_section(tables, header.side_offset, header.side_bytes) &&
                    is_section(tables, header.ring_offset, ring_bytes);
  if (!fits) return malformed(path, "the sections that its header names do not fit into it");
  if (header.comm_entry_count != 0 && header.comm_entry_bytes < sizeof(CommEntry)) {
    return malformed(path, fmt::format("says that an entry of its communicator table has {} bytes", header.comm_entry_bytes));
  }
  if (header.block_count != 0 && (header.block_bytes < 2 * trace::kRecordBytes || header.block_bytes % trace::kRecordBytes != 0)) {
    return malformed(path, fmt::format("says that a block has {} bytes", header.block_bytes));
  }
  tables.cut = header.file_bytes > contents.size();
  TableReader(tables, contents).read();
  return tables;
}

std::optional<std::vector<std::int32_t>> expand_ranges(const std::vector<trace::RankRange>& ranges, std::int32_t expected) {
  constexpr std::int64_t kMostRanks = std::int64_t{1} << 22;
  if (expected <= 0 || expected > kMostRanks) return std::nullopt;
  std::vector<std::int32_t> ranks;
  for (const trace::RankRange& range : ranges) {
    if (range.ranks > static_cast<std::uint32_t>(expected) - ranks.size()) return std::nullopt;
    for (std::int64_t i = 0; i < range.ranks; ++i) {
      const std::int64_t rank = range.first + i * range.stride;
      if (rank < 0 || rank > kMostRanks) return std::nullopt;
      ranks.push_back(static_cast<std::int32_t>(rank));
    }
  }
  if (ranks.size() != static_cast<std::size_t>(expected)) return std::nullopt;
  std::vector<std::int32_t> sorted = ranks;
  std::ranges::sort(sorted);
  if (std::ranges::adjacent_find(sorted) != sorted.end()) return std::nullopt;
  return ranks;
}

}  // namespace lockstep
