#include "read_trace.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

namespace lockstep::shim_test {
namespace {

using namespace lockstep::trace;

class Bytes {
 public:
  explicit Bytes(const std::vector<std::byte>& bytes) : bytes_(bytes) {}
  bool has(std::uint64_t at, std::uint64_t size) const {
    return at <= bytes_.size() && size <= bytes_.size() - at;
  }
  template <class T>
  T get(std::uint64_t at) const {
    T value{};
    if (has(at, sizeof value)) std::memcpy(&value, bytes_.data() + at, sizeof value);
    return value;
  }
  std::string text(std::uint64_t& at, std::uint64_t end) const {
    std::string result;
    while (at < end && has(at, 1) && bytes_[at] != std::byte{0}) result += static_cast<char>(bytes_[at++]);
    ++at;
    return result;
  }

 private:
  const std::vector<std::byte>& bytes_;
};

std::vector<std::int32_t> expand(const Bytes& bytes, std::uint64_t& at, std::uint32_t ranges) {
  std::vector<std::int32_t> ranks;
  for (std::uint32_t i = 0; i < ranges; ++i, at += sizeof(RankRange)) {
    const auto range = bytes.get<RankRange>(at);
    for (std::uint32_t k = 0; k < range.ranks; ++k)
      ranks.push_back(range.first + static_cast<std::int32_t>(k) * range.stride);
  }
  return ranks;
}

void read_side_record(ReadTrace& trace, const Bytes& bytes, const SideHeader& head, std::uint64_t at) {
  const std::uint64_t end = at + head.bytes;
  switch (head.kind) {
    case SideKind::kProcess: {
      trace.process = bytes.get<ProcessRecord>(at);
      at += sizeof(ProcessRecord);
      for (std::string* text :
           {&trace.host, &trace.program, &trace.run, &trace.launcher, &trace.version, &trace.directory}) {
        *text = bytes.text(at, end);
      }
      break;
    }
    case SideKind::kCommunicator: {
      ReadComm comm;
      comm.record = bytes.get<CommRecord>(at);
      at += sizeof(CommRecord);
      comm.members = expand(bytes, at, comm.record.ranges);
      at += comm.record.remote_ranges * sizeof(RankRange);
      comm.name = bytes.text(at, end);
      trace.comms[comm.record.comm] = comm;
      break;
    }
    case SideKind::kCommEnd: {
      const auto record = bytes.get<CommEndRecord>(at);
      trace.comm_ends[record.comm] = record;
      break;
    }
    case SideKind::kCommAlias:
      break;
    case SideKind::kDatatype:
    case SideKind::kRedop: {
      const auto record = bytes.get<NamedRecord>(at);
      at += sizeof record;
      auto& table = head.kind == SideKind::kDatatype ? trace.datatypes : trace.redops;
      table[record.id] = {bytes.text(at, end), record.hash};
      break;
    }
    case SideKind::kCallSite: {
      const auto record = bytes.get<CallSiteRecord>(at);
      trace.sites[record.site] = {record, trace.modules[record.module]};
      break;
    }
    case SideKind::kModule: {
      const auto record = bytes.get<ModuleRecord>(at);
      at += sizeof record + record.build_id_bytes;
      trace.modules[record.module] = bytes.text(at, end);
      break;
    }
    case SideKind::kVector: {
      const auto record = bytes.get<VectorRecord>(at);
      at += sizeof record;
      for (std::uint32_t i = 0; i < record.values; ++i, at += 8) {
        trace.vectors[record.vector].push_back(bytes.get<std::uint64_t>(at));
      }
      break;
    }
    case SideKind::kNote:
    case SideKind::kCommName:
    case SideKind::kLibrary: {
      const auto record = bytes.get<TextRecord>(at);
      at += sizeof record;
      const std::string text = bytes.text(at, end);
      if (head.kind == SideKind::kNote) trace.notes.push_back(text);
      if (head.kind == SideKind::kLibrary) trace.library = text;
      if (head.kind == SideKind::kCommName) trace.comm_names[record.subject] = text;
      break;
    }
    case SideKind::kPythonSite: {
      const auto record = bytes.get<PythonSiteRecord>(at);
      at += sizeof record;
      for (std::uint32_t i = 0; i < record.frames; ++i) {
        ReadFrame frame;
        frame.line = bytes.get<std::uint32_t>(at);
        at += 4;
        frame.file = bytes.text(at, end);
        frame.function = bytes.text(at, end);
        trace.python_sites[record.site].push_back(frame);
      }
      break;
    }
  }
}

void read_side(ReadTrace& trace, const Bytes& bytes) {
  const FileHeader& header = trace.header;
  const std::uint64_t used = std::min(header.side_used, header.side_bytes);
  for (std::uint64_t at = 0; at < used;) {
    if (bytes.get<std::uint64_t>(header.side_offset + at) == 0) {
      at += 64;
      continue;
    }
    const auto head = bytes.get<SideHeader>(header.side_offset + at);
    if (head.magic != kSideMagic || head.bytes < sizeof head || at + head.bytes > header.side_bytes) {
      trace.problems.push_back("side record at " + std::to_string(at) + " is damaged");
      return;
    }
    if (head.state == kSideCommitted) read_side_record(trace, bytes, head, header.side_offset + at);
    at += (head.bytes + 63U) / 64 * 64;
  }
}

void add_extension(ReadCall& call, const Bytes& bytes, std::uint64_t at, std::uint8_t kind) {
  switch (static_cast<RecordKind>(kind)) {
    case RecordKind::kSecondHalf:
      call.half = bytes.get<SecondHalfRecord>(at);
      call.has_half = true;
      break;
    case RecordKind::kRequests: {
      const auto record = bytes.get<RequestsRecord>(at);
      for (int i = 0; i < record.used && i < 12; ++i) call.requests.push_back(record.ids[i]);
      break;
    }
    case RecordKind::kCounts:
      call.counts.push_back(bytes.get<CountsRecord>(at));
      break;
    case RecordKind::kCreation:
      call.creation = bytes.get<CreationRecord>(at);
      call.has_creation = true;
      break;
    case RecordKind::kName:
      call.name = bytes.get<NameRecord>(at).name;
      break;
    case RecordKind::kIssue:
      call.issue = bytes.get<IssueRecord>(at);
      call.has_issue = true;
      break;
    case RecordKind::kBlock:
      break;
  }
}

void read_block(ReadTrace& trace, const Bytes& bytes, const BlockRecord& head, std::uint64_t at) {
  const std::uint64_t end = at + trace.header.block_bytes;
  const auto commit = static_cast<std::uint32_t>(head.number);
  for (at += kRecordBytes; at < end; at += kRecordBytes) {
    const auto record = bytes.get<CallRecord>(at);
    if (record.commit != commit) return;
    if (record.kind >= kFirstExtensionKind) {
      trace.problems.push_back("an extension record without a call in block " + std::to_string(head.number));
      continue;
    }
    ReadCall call;
    call.record = record;
    call.thread_index = head.thread_index;
    call.block = head.number;
    for (int i = 0; i < record.extensions; ++i) {
      at += kRecordBytes;
      const auto extension = bytes.get<NameRecord>(at);
      if (at >= end || extension.commit != commit || extension.kind < kFirstExtensionKind) {
        trace.problems.push_back("an extension is missing in block " + std::to_string(head.number));
        return;
      }
      add_extension(call, bytes, at, extension.kind);
    }
    trace.calls.push_back(std::move(call));
  }
}

void read_ring(ReadTrace& trace, const Bytes& bytes) {
  const FileHeader& header = trace.header;
  std::map<std::uint64_t, std::uint64_t> blocks;  // number -> offset
  for (std::uint32_t slot = 0; slot < header.block_count; ++slot) {
    const std::uint64_t at = header.ring_offset + std::uint64_t{slot} * header.block_bytes;
    const auto head = bytes.get<BlockRecord>(at);
    const bool open = head.kind == static_cast<std::uint8_t>(RecordKind::kBlock) && head.number != 0 &&
                      head.commit == static_cast<std::uint32_t>(head.number);
    if (open) blocks[head.number] = at;
  }
  std::uint64_t expected = 0;
  for (const auto& [number, at] : blocks) {
    if (trace.first_block == 0) trace.first_block = number;
    if (expected != 0 && number != expected) trace.gap_in_blocks = true;
    expected = number + 1;
    trace.last_block = number;
    read_block(trace, bytes, bytes.get<BlockRecord>(at), at);
  }
}

}  // namespace

ReadTrace parse_trace(const std::vector<std::byte>& content) {
  ReadTrace trace;
  const Bytes bytes(content);
  trace.header = bytes.get<FileHeader>(0);
  const FileHeader& header = trace.header;
  if (header.magic != kMagic) {
    trace.problems.emplace_back("no magic");
    return trace;
  }
  if (header.min_reader > kVersion || header.header_bytes != kHeaderBytes ||
      header.record_bytes != kRecordBytes || header.file_bytes != content.size() ||
      !bytes.has(header.side_offset, header.side_bytes) ||
      !bytes.has(header.ring_offset, std::uint64_t{header.block_bytes} * header.block_count) ||
      !bytes.has(header.comm_table_offset,
                 std::uint64_t{header.comm_entry_bytes} * header.comm_entry_count)) {
    trace.problems.emplace_back("the header does not fit the file");
    return trace;
  }
  read_side(trace, bytes);
  read_ring(trace, bytes);
  for (std::uint32_t i = 0; i < header.comm_entry_count; ++i) {
    const auto entry =
        bytes.get<CommEntry>(header.comm_table_offset + std::uint64_t{i} * header.comm_entry_bytes);
    if (entry.comm != 0) trace.entries[entry.comm] = entry;
  }
  return trace;
}

ReadTrace read_trace(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string content((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  std::vector<std::byte> bytes(content.size());
  std::memcpy(bytes.data(), content.data(), content.size());
  return parse_trace(bytes);
}

std::vector<std::string> find_traces(const std::string& directory) {
  std::vector<std::pair<std::pair<std::int32_t, std::uint64_t>, std::string>> found;
  std::error_code error;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory, error)) {
    if (entry.path().extension() != ".lst") continue;
    std::ifstream file(entry.path(), std::ios::binary);
    FileHeader header{};
    file.read(reinterpret_cast<char*>(&header), sizeof header);
    found.push_back({{header.job_rank, header.start_unix_ns}, entry.path().string()});
  }
  std::sort(found.begin(), found.end());
  std::vector<std::string> paths;
  for (auto& [key, path] : found) paths.push_back(path);
  return paths;
}

std::string describe(const ReadTrace& trace, const ReadCall& call) {
  const CallRecord& r = call.record;
  std::ostringstream out;
  out << op_name(call.kind());
  if (!call.name.empty()) out << ' ' << call.name;
  out << " comm=" << r.comm;
  if (r.seq != kNoPosition) out << " seq=" << r.seq;
  if (r.peer != kNoPeer) out << " peer=" << r.peer;
  if (is_point_to_point(call.kind()))
    out << " tag=" << static_cast<std::int32_t>(r.aux);
  else if (r.aux != 0)
    out << " aux=" << r.aux;
  if (r.datatype != 0) {
    const auto type = trace.datatypes.find(r.datatype);
    out << ' ' << (type != trace.datatypes.end() ? type->second.first : "?");
  }
  out << '[' << r.count << ']';
  if (r.redop != 0) {
    const auto op = trace.redops.find(r.redop);
    out << ' ' << (op != trace.redops.end() ? op->second.first : "?");
  }
  if (r.flags != 0) out << " flags=0x" << std::hex << static_cast<int>(r.flags) << std::dec;
  if (call.has_half) {
    out << " half(peer=" << call.half.peer << " tag=" << static_cast<std::int32_t>(call.half.tag)
        << " count=" << call.half.count << ')';
  }
  if (!call.requests.empty()) {
    out << " requests(";
    for (const std::uint32_t id : call.requests) out << ' ' << id;
    out << " )";
  }
  for (const CountsRecord& counts : call.counts) {
    out << " counts" << static_cast<int>(counts.side) << "(n=" << counts.members << " total=" << counts.total
        << ')';
  }
  if (call.has_creation) {
    out << " color=" << call.creation.color << " key=" << call.creation.key
        << " members=" << call.creation.members;
  }
  if (r.detail != 0) out << " detail=" << std::hex << r.detail << std::dec;
  out << (call.returned() ? " returned " : " ENTERED ") << static_cast<int>(r.result);
  const auto site = trace.sites.find(r.call_site);
  if (site != trace.sites.end()) {
    const std::string& module = site->second.module;
    out << " at " << module.substr(module.rfind('/') + 1) << "+0x" << std::hex
        << site->second.record.file_offset << std::dec;
  }
  if (const auto frames = trace.python_sites.find(r.call_site); frames != trace.python_sites.end()) {
    out << " at";
    for (const ReadFrame& frame : frames->second) {
      out << ' ' << frame.file.substr(frame.file.rfind('/') + 1) << ':' << frame.line << '(' << frame.function << ')';
    }
  }
  return out.str();
}

}  // namespace lockstep::shim_test
