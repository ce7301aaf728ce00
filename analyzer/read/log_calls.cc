// See the header. COLL lines: opCount is hexadecimal, the order of lines per process and communicator is the order of calls
// (opCount stays 0 on one node from 2.27 on); datatype numbers are those of nccl.h.
#include "read/log_calls.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <set>

#include "read/native_names.h"

namespace lockstep {
namespace {

constexpr std::size_t kMostKept = std::size_t{1} << 23;  // 40 bytes each

re2::StringPiece piece(std::string_view text) { return {text.data(), text.size()}; }

std::string_view datatype_name(int number) {
  constexpr std::string_view kNames[] = {"i8", "u8", "i32", "u32", "i64", "u64", "f16", "f32", "f64", "bf16", "f8e4m3", "f8e5m2"};
  return number >= 0 && static_cast<std::size_t>(number) < std::size(kNames) ? kNames[number] : std::string_view{};
}

std::uint8_t small(int number) { return static_cast<std::uint8_t>(std::clamp(number, 0, 255)); }

std::string_view redop_name(int number) {
  constexpr std::string_view kNames[] = {"sum", "prod", "max", "min", "avg"};
  return number >= 0 && static_cast<std::size_t>(number) < std::size(kNames) ? kNames[number] : std::string_view{};
}

}  // namespace

bool LogCalls::read(std::string_view text, std::uint32_t line, std::optional<std::int32_t> rank) {
  if (kept_ >= kMostKept) {
    full_ = full_ || text.find("opCount") != std::string_view::npos || text.find("NCCL CALL") != std::string_view::npos;
    return false;
  }
  if (text.find("NCCL CALL") != std::string_view::npos && read_trace_call(text, line)) return true;
  if (text.find("opCount") != std::string_view::npos && read_coll(text, line)) return true;
  if (text.find("NCCL INFO") != std::string_view::npos && read_init(text)) return true;
  return read_schedule(text, line, rank) || instructions_.read(text, line, rank);
}

bool LogCalls::read_coll(std::string_view text, std::uint32_t line) {
  static const RE2 kColl(R"((?:([^\s:\[\]]+):(\d+):\d+ )?\[(\d+)\] NCCL INFO (?:(\w+): )?opCount ([0-9a-f]+) sendbuff \S+ recvbuff \S+ count (\d+)(?: size \d+)? datatype (\d+) op (\d+)(?: root (-?\d+))? comm (\S+) \[nranks=(\d+)\])");
  std::string host, pid, op, comm;
  int device = 0, ranks = 0, datatype = 0, redop = 0;
  std::string op_count;
  Call call{.line = line};
  re2::StringPiece root;
  if (!RE2::PartialMatch(piece(text), kColl, &host, &pid, &device, &op, &op_count, &call.count, &datatype, &redop, &root, &comm, &ranks)) {
    return false;
  }
  call.datatype = small(datatype);
  call.redop = small(redop);
  call.op_count = std::strtoull(op_count.c_str(), nullptr, 16);
  if (!root.empty()) call.root = std::atoi(std::string(root.data(), root.size()).c_str());
  call.op = op_index(op);
  Process& process = processes_[pid.empty() ? fmt::format("[{}]", device) : fmt::format("{}:{}", host, pid)];
  process.device = device;
  call.communicator = communicator_index(process, comm, ranks);
  process.calls.push_back(call);
  ++kept_;
  return true;
}

/// NCCL built with TRACE=1: "host:pid:tid NCCL CALL ncclAllReduce(send,recv,count,datatype,op,root,comm,stream)", all hexadecimal
/// but count, datatype, op and root.
bool LogCalls::read_trace_call(std::string_view text, std::uint32_t line) {
  static const RE2 kCall(R"((?:([^\s:\[\]]+):(\d+):\d+ )(?:\[(\d+)\] )?NCCL CALL nccl(\w+)\([0-9a-fx]+,[0-9a-fx]+,(\d+),(\d+),(\d+),(-?\d+),([0-9a-fx]+),[0-9a-fx]+\))");
  std::string host, pid, op, comm;
  int datatype = 0, redop = 0;
  Call call{.line = line};
  re2::StringPiece device;
  if (!RE2::PartialMatch(piece(text), kCall, &host, &pid, &device, &op, &call.count, &datatype, &redop, &call.root, &comm)) return false;
  call.datatype = small(datatype);
  call.redop = small(redop);
  call.op = op_index(op);
  Process& process = processes_[fmt::format("{}:{}", host, pid)];
  if (!device.empty()) process.device = std::atoi(std::string(device.data(), device.size()).c_str());
  call.communicator = communicator_index(process, comm.starts_with("0x") ? comm : "0x" + comm, 0);
  process.calls.push_back(call);
  ++kept_;
  return true;
}

std::uint16_t LogCalls::op_index(std::string_view name) {
  constexpr std::size_t kMostNames = 256;
  const auto known = std::ranges::find(op_names_, name);
  if (known != op_names_.end()) return static_cast<std::uint16_t>(known - op_names_.begin());
  if (op_names_.size() >= kMostNames) return kMostNames - 1;
  op_names_.emplace_back(name);
  return static_cast<std::uint16_t>(op_names_.size() - 1);
}

std::uint32_t LogCalls::communicator_index(Process& process, const std::string& address, int ranks) {
  const auto known = std::ranges::find(process.communicators, address, &std::pair<std::string, int>::first);
  if (known != process.communicators.end()) return static_cast<std::uint32_t>(known - process.communicators.begin());
  process.communicators.emplace_back(address, ranks);
  return static_cast<std::uint32_t>(process.communicators.size() - 1);
}

void LogCalls::merge(LogCalls&& other, std::string_view path) {
  for (auto& [key, process] : other.processes_) {
    Process& mine = processes_[key];
    if (mine.device < 0) mine.device = process.device;
    if (mine.path.empty()) mine.path = path;
    for (Call& call : process.calls) {
      const auto& [address, ranks] = process.communicators[call.communicator];
      call.communicator = communicator_index(mine, address, ranks);
      call.op = op_index(other.op_names_[call.op]);
      mine.calls.push_back(call);
    }
  }
  inits_.merge(other.inits_);
  schedules_.merge(other.schedules_);
  rank_of_stage_.merge(other.rank_of_stage_);
  instructions_.merge(std::move(other.instructions_));
  kept_ += other.kept_;
  full_ = full_ || other.full_;
}

std::map<std::int32_t, ReportedPlace> LogCalls::places() const {
  int largest = 0;
  for (const auto& [key, identity] : inits_) largest = std::max(largest, identity.ranks);
  std::map<std::int32_t, ReportedPlace> places;
  constexpr std::size_t kMostPlaces = 65'536;
  for (const auto& [key, identity] : inits_) {
    const std::size_t colon = key.first.rfind(':');
    if (identity.ranks != largest || colon == std::string::npos || places.size() >= kMostPlaces) continue;
    Place place{.host = key.first.substr(0, colon), .pid = std::atoll(key.first.c_str() + colon + 1)};
    if (identity.device >= 0) place.device = fmt::format("GPU {}", identity.device);
    places.try_emplace(identity.rank, ReportedPlace{.place = std::move(place)});
  }
  return places;
}

bool LogCalls::read_init(std::string_view text) {
  static const RE2 kInit(R"((?:([^\s:\[\]]+):(\d+):\d+ )?\[(\d+)\] NCCL INFO .*\bcomm (\S+) rank (\d+) n[rR]anks (\d+).*?(?:commId (0x[0-9a-f]+))?(?: commHash (0x[0-9a-f]+))?(?: - |$))");
  static const RE2 kSplit(R"( parent (\S+) (?:splitCount|childCount) (\d+) color (-?\d+))");
  std::string host, pid, comm, id;
  int device = 0;
  Identity identity;
  re2::StringPiece comm_id, hash;
  if (!RE2::PartialMatch(piece(text), kInit, &host, &pid, &device, &comm, &identity.rank, &identity.ranks, &comm_id, &hash)) return false;
  identity.device = device;
  identity.id = std::string(comm_id.data(), comm_id.size());
  if (!hash.empty()) identity.id = std::string(hash.data(), hash.size());
  // A split without an id of its own: equal on all its ranks are the parent, the how manieth split of it, and the colour.
  std::string count, color;
  if (identity.id.empty() && RE2::PartialMatch(piece(text), kSplit, &identity.parent, &count, &color)) identity.split = fmt::format("split {} color {}", count, color);
  constexpr std::size_t kMostInits = std::size_t{1} << 20;
  if (inits_.size() >= kMostInits) return true;
  inits_.insert_or_assign({pid.empty() ? fmt::format("[{}]", device) : fmt::format("{}:{}", host, pid), comm}, identity);
  return true;
}

bool LogCalls::read_schedule(std::string_view text, std::uint32_t line, std::optional<std::int32_t> rank) {
  static const RE2 kHead(R"(^\s*(?:[Rr]ank ?(\d+))\s*[:=]\s*\[)");
  static const RE2 kStep(R"((\d+)_?(?i:(SEND|RECV))_?([FB])(\d+))");
  int named = -1;
  if (RE2::PartialMatch(piece(text), kHead, &named)) rank = named;
  if (!rank) return false;
  re2::StringPiece rest = piece(text);
  std::string what, direction;
  Step step{.line = line};
  bool any = false;
  while (RE2::FindAndConsume(&rest, kStep, &step.stage, &what, &direction, &step.micro_batch)) {
    step.sends = what[0] == 'S' || what[0] == 's';
    step.direction = direction[0];
    schedules_[*rank].push_back(step);
    rank_of_stage_.try_emplace(step.stage, *rank);
    any = true;
    if (++kept_ >= kMostKept) break;
  }
  // Computations name the stages of a rank too: "2F0".
  static const RE2 kCompute(R"((?:^|[\[ ,])(\d+)([FBW])(\d+))");
  rest = piece(text);
  while (any && RE2::FindAndConsume(&rest, kCompute, &step.stage, &direction, &step.micro_batch)) rank_of_stage_.try_emplace(step.stage, *rank);
  return any;
}

std::size_t LogCalls::add_programs(std::string_view path, JobIntake& intake) {
  return add_processes(path, intake) + add_schedules(path, intake) + instructions_.add_programs(path, intake);
}

std::string LogCalls::id_of(const std::string& key, const Identity& identity) const {
  constexpr int kDeepest = 8;
  std::string path;
  const Identity* at = &identity;
  for (int depth = 0; depth < kDeepest && at->id.empty() && !at->split.empty(); ++depth) {
    path = fmt::format(" {}{}", at->split, path);
    const auto parent = inits_.find({key, at->parent});
    if (parent == inits_.end()) return {};
    at = &parent->second;
  }
  return at->id.empty() ? std::string{} : at->id + path;
}

std::vector<LogCalls::Member> LogCalls::members_of(const std::string& key, const Process& process) const {
  std::vector<Member> members;
  std::map<int, std::size_t> of_size;
  for (const auto& [address, told_ranks] : process.communicators) {
    const auto init = inits_.find({key, address});
    Member member{.ranks = told_ranks != 0 || init == inits_.end() ? told_ranks : init->second.ranks};
    if (init != inits_.end()) member.id = id_of(key, init->second);
    if (member.id.empty()) member.index = of_size[member.ranks]++;
    members.push_back(std::move(member));
  }
  return members;
}

std::set<int> LogCalls::sizes_not_told_apart() const {
  struct Joined {
    int processes = 0;
    bool differ = false;
    std::optional<Call> first{};
  };
  std::map<std::pair<int, std::size_t>, Joined> joined;
  std::map<int, std::size_t> most;  // of one size in one process
  for (const auto& [key, process] : processes_) {
    const std::vector<Member> members = members_of(key, process);
    for (std::size_t c = 0; c < members.size(); ++c) {
      if (!members[c].id.empty()) continue;
      most[members[c].ranks] = std::max(most[members[c].ranks], members[c].index + 1);
      Joined& here = joined[{members[c].ranks, members[c].index}];
      ++here.processes;
      const auto call = std::ranges::find(process.calls, c, &Call::communicator);
      if (call == process.calls.end()) continue;
      const auto same = [](const Call& a, const Call& b) { return a.op == b.op && a.count == b.count && a.datatype == b.datatype; };
      // A log may begin later for one process than for another.
      here.differ = here.differ || (here.first && here.first->op_count == call->op_count && !same(*here.first, *call));
      if (!here.first) here.first = *call;
    }
  }
  std::set<int> sizes;
  for (const auto& [which, here] : joined) {
    const auto& [ranks, index] = which;
    if ((ranks > 0 && here.processes > ranks) || (here.differ && most[ranks] > 1)) sizes.insert(ranks);
  }
  return sizes;
}

std::size_t LogCalls::add_processes(std::string_view path, JobIntake& intake) {
  JobBuilder& builder = intake.builder();
  if (processes_.size() < 2) return 0;
  const std::set<int> not_told_apart = sizes_not_told_apart();
  for (const int ranks : not_told_apart) {
    builder.warn(fmt::format("{}: calls on communicators of {} ranks are left out: there are several, and no line says which is which on which "
                             "rank (NCCL_DEBUG_SUBSYS=INIT,COLL writes those)", path, ranks));
    builder.set_incomplete();
  }
  // Without the lines of initialization: one process for each device of one host.
  std::set<int> devices;
  std::set<std::string> hosts;
  for (const auto& [key, process] : processes_) {
    devices.insert(process.device);
    hosts.insert(key.substr(0, key.find(':')));
  }
  if (full_) {
    builder.warn(fmt::format("{}: more than {} calls: what follows is left out", path, kMostKept));
    builder.set_incomplete();
  }
  const bool by_device = !devices.contains(-1) && devices.size() == processes_.size() && (hosts.size() == 1 || !processes_.begin()->first.find('['));
  intake.set_library(Library::kNccl, path);
  std::int32_t next = 0;
  std::size_t added = 0;
  for (auto& [key, process] : processes_) {
    const std::int32_t known = rank_of(key);
    const std::int32_t by_order = by_device ? process.device : next++;
    const std::int32_t rank = known >= 0 ? known : by_order;
    Program program{.rank = rank, .source = builder.source(process.path.empty() ? path : std::string_view(process.path))};
    std::vector<CommIndex> communicators;
    std::vector<bool> is_left_out;
    std::vector<std::uint64_t> first(process.communicators.size(), 0);
    std::vector<bool> seen(process.communicators.size(), false);
    for (const Member& member : members_of(key, process)) {
      const int ranks = member.ranks;
      is_left_out.push_back(member.id.empty() && not_told_apart.contains(ranks));
      if (is_left_out.back()) {
        communicators.emplace_back();
        continue;
      }
      const std::string id = member.id.empty() ? fmt::format("nranks={} #{}", ranks, member.index) : member.id;
      const bool is_world = process.communicators.size() == 1 && ranks > 1;
      std::vector<std::int32_t> members;
      for (std::int32_t rank_there = 0; is_world && rank_there < ranks && by_device; ++rank_there) members.push_back(rank_there);
      communicators.push_back(builder.communicator(id, fmt::format("comm of {}", ranks), members));
      intake.add_to_world(members);
    }
    for (const Call& call : process.calls) {
      if (is_left_out[call.communicator]) continue;
      const std::string& op = op_names_[call.op];
      const auto kind = kind_from_native_name("nccl" + op);
      Operation operation{.count = Count::of(call.count), .comm = communicators[call.communicator], .line = call.line,
                          .kind = kind ? kind->kind : OpKind::kOpaque, .state = OpState::kEntered};
      operation.datatype = builder.datatype(datatype_name(call.datatype));
      operation.redop = builder.redop(redop_name(call.redop));
      if (has_root(operation.kind)) operation.peer = call.root;
      operation.extra = intake.shared_extra({}, op);
      if (!seen[call.communicator]) first[call.communicator] = call.op_count;
      seen[call.communicator] = true;
      program.operations.push_back(operation);
    }
    for (std::size_t c = 0; c < communicators.size(); ++c) {
      if (first[c] > 0 && first[c] < 0xffffffffULL) program.earlier.push_back({communicators[c], static_cast<std::uint32_t>(first[c])});
    }
    program.head_missing = !program.earlier.empty();
    program.tail_missing = full_;
    if (program.operations.empty() && !not_told_apart.empty()) continue;
    intake.add_to_world({{rank}});
    intake.add_program(std::move(program));
    ++added;
  }
  return added;
}

std::size_t LogCalls::add_schedules(std::string_view path, JobIntake& intake) {
  if (schedules_.size() < 2) return 0;
  JobBuilder& builder = intake.builder();
  const SourceIndex source = builder.source(path);
  std::vector<std::int32_t> members;
  for (const auto& [rank, steps] : schedules_) members.push_back(rank);
  const CommIndex pipe = builder.communicator("pipeline", "pipeline", members);
  intake.add_to_world(members);
  for (const auto& [rank, steps] : schedules_) {
    Program program{.rank = rank, .source = source, .head_missing = true};
    for (const Step& step : steps) {
      // Activations go to the next stage and come from the one before, gradients the other way.
      const int other = step.stage + ((step.direction == 'F') == step.sends ? 1 : -1);
      const auto peer = rank_of_stage_.find(other);
      if (peer == rank_of_stage_.end() || peer->second == rank) continue;
      Operation operation{.comm = pipe, .peer = peer->second, .line = step.line, .kind = step.sends ? OpKind::kSend : OpKind::kRecv,
                          .state = OpState::kEntered};
      operation.extra = intake.shared_extra(fmt::format("{}{}_{}{}", step.stage, step.sends ? "SEND" : "RECV", step.direction, step.micro_batch), {});
      program.operations.push_back(operation);
    }
    intake.add_program(std::move(program));
  }
  return schedules_.size();
}

std::int32_t LogCalls::rank_of(const std::string& key) const {
  std::int32_t rank = -1;
  int most = 0;
  for (auto init = inits_.lower_bound({key, {}}); init != inits_.end() && init->first.first == key; ++init) {
    if (init->second.ranks <= most) continue;
    most = init->second.ranks;
    rank = init->second.rank;
  }
  // In less than the job it is the rank in a group.
  return static_cast<std::size_t>(most) < processes_.size() ? -1 : rank;
}

std::vector<LogCalls::LastCall> LogCalls::last_by_process() const {
  std::vector<LastCall> last;
  for (const auto& [key, process] : processes_) {
    if (process.calls.empty()) continue;
    const Call& call = process.calls.back();
    last.push_back({.rank = rank_of(key), .line = call.line, .calls = process.calls.size(),
                    .text = fmt::format("{} [{}] {} opCount {:x} count {}", key, process.device, op_names_[call.op], call.op_count, call.count)});
  }
  return last;
}

std::uint32_t LogCalls::last_line() const {
  std::uint32_t line = 0;
  for (const auto& [key, process] : processes_) line = std::max(line, process.calls.empty() ? 0 : process.calls.back().line);
  return line;
}

std::string LogCalls::last_calls() const {
  std::string text;
  constexpr std::size_t kMostTold = 8;
  std::size_t told = 0;
  for (const LastCall& last : last_by_process()) {
    if (told++ == kMostTold) break;
    text += (text.empty() ? "" : "; ") + last.text;
  }
  return text;
}

}  // namespace lockstep
