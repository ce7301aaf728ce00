// See the header. What is done here and why:
//  - Calls are placed by their number in their group. Numbers of entries (record_id) count all groups of a process together and
//    mean something only if all ranks issue the same stream of calls.
//  - Calls before the first entry of a group were made (the number says so) and are not known: Program::earlier. A rank without
//    entries of a group has nothing in flight there: where its record is not whole, it made what is known to have completed.
//  - A watchdog notices completion some time later: one call that others have completed and this rank has not yet is no fault.
//    More than that is left as it is, for the diagnosis.
//  - A record ends for good only where the job is known to stand still: see stands_still().
#include "read/flight_recorder.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "read/flight_groups.h"
#include "read/flight_ranks.h"

namespace lockstep {
namespace {

bool is_in_flight(const Operation& operation) {
  return operation.state == OpState::kEnqueued || operation.state == OpState::kStarted || operation.state == OpState::kUnknown;
}

class FlightJob {
 public:
  FlightJob(std::vector<RankedDump> dumps, JobIntake& intake)
      : dumps_(std::move(dumps)), intake_(intake), groups_(join_flight_groups(dumps_, intake)) {}

  void read() {
    for (const RankedDump& ranked : dumps_) any_head_missing_ = any_head_missing_ || ranked.dump->first_record > 0;
    forgive_late_notice();
    const bool stands = stands_still();
    for (const RankedDump& ranked : dumps_) set_tables(*ranked.dump);
    collect_models();
    for (std::size_t d = 0; d < dumps_.size(); ++d) add_program(d, stands);
    warn_of_versions();
    if (std::ranges::any_of(dumps_, [](const RankedDump& ranked) { return ranked.dump->retires_when_done; })) {
      intake_.builder().warn("gloo's Flight Recorder writes down no messages (send, recv) and no roots, and does not tell calls that failed from "
                             "those that completed");
    }
  }

 private:
  const JobGroup& group(std::size_t d, std::uint32_t g) const { return groups_.groups[groups_.group_of[d][g]]; }

  /// One call in flight that another member has completed: the watchdog has not looked yet.
  void forgive_late_notice() {
    for (std::size_t d = 0; d < dumps_.size(); ++d) {
      FlightDump& dump = *dumps_[d].dump;
      std::vector<std::uint32_t> first_open(dump.groups.size(), 0);
      for (std::size_t i = 0; i < dump.operations.size(); ++i) {
        const FlightCall& call = dump.calls[i];
        if (!is_collective(dump.operations[i].kind) || call.seq == 0 || !is_in_flight(dump.operations[i])) continue;
        if (first_open[call.group] != 0) continue;
        first_open[call.group] = call.seq;
        if (call.seq == group(d, call.group).completed) dump.operations[i].state = OpState::kCompleted;
      }
    }
    for (const RankedDump& ranked : dumps_) {
      FlightDump& dump = *ranked.dump;
      std::erase_if(dump.in_flight, [&](const FlightDump::InFlight& call) {
        return dump.operations[call.operation].state == OpState::kCompleted;
      });
    }
  }

  /// Whether what is missing at the end of these records will not come any more. Dumps of a job that runs are taken one after
  /// the other, and a rank that is one call ahead is nothing; so one of these is asked for: the watchdog gave a call up; a call
  /// in flight is old; a rank lacks two calls or more that others wait in; every rank stands in a call, so that none is on its
  /// way; or a rank's places of call follow another's one call later, which shows that it left one out.
  bool stands_still() const {
    std::int64_t oldest = 0, latest = 0;
    bool all_stand = true, any_stands = false, all_failed = true;
    for (const RankedDump& ranked : dumps_) {
      const FlightDump& dump = *ranked.dump;
      if (dump.timed_out) return true;
      latest = std::max(latest, dump.last_ns);
      for (const FlightDump::InFlight& call : dump.in_flight) {
        if (call.created_ns > 0) oldest = oldest == 0 ? call.created_ns : std::min(oldest, call.created_ns);
      }
      all_failed = all_failed && dump.last_failed;
      all_stand = all_stand && !dump.in_flight.empty();
      any_stands = any_stands || !dump.in_flight.empty();
    }
    constexpr std::int64_t kOldNs = 60'000'000'000;
    // Each carried out a call that another lacks. Had all of these completed, each dump would be older than another one.
    if (all_failed) return true;
    if (!any_stands) return false;
    if (all_stand || (oldest > 0 && latest - oldest >= kOldNs)) return true;
    for (const JobGroup& group : groups_.groups) {
      for (const FlightMember& member : group.members) {
        const std::uint32_t made = member.first != 0 ? member.last : calls_without_entries(member, group);
        if (made + 2 <= group.made && group.completed <= made) return true;
        if (made + 1 == group.made && member.first != 0 && follows_one_later(group, member)) return true;
      }
    }
    return false;
  }

  std::uint32_t calls_without_entries(const FlightMember& member, const JobGroup& group) const {
    const FlightDump& dump = *dumps_[member.dump].dump;
    if (dump.first_record == 0 && dump.entries > 0) return 0;
    if (member.stated && !group.has_messages) return *member.stated;
    return group.completed;
  }

  /// The places from which a member calls are those of another member, shifted by one call from some point on.
  bool follows_one_later(const JobGroup& group, const FlightMember& behind) const {
    for (const FlightMember& ahead : group.members) {
      if (ahead.last != behind.last + 1 || ahead.first == 0) continue;
      const auto ours = sites_of(behind, group.comm);
      const auto theirs = sites_of(ahead, group.comm);
      std::size_t shifted = 0;
      for (std::uint32_t back = 0; back < behind.last; ++back) {
        const auto own = ours.find(behind.last - back);
        const auto same = theirs.find(behind.last - back);
        const auto later = theirs.find(behind.last - back + 1);
        if (own == ours.end() || later == theirs.end() || own->second.empty() || own->second != later->second) break;
        if (same != theirs.end() && same->second != own->second) ++shifted;
      }
      if (shifted > 0) return true;
    }
    return false;
  }

  std::map<std::uint32_t, std::string> sites_of(const FlightMember& member, CommIndex comm) const {
    std::map<std::uint32_t, std::string> sites;
    const FlightDump& dump = *dumps_[member.dump].dump;
    constexpr std::size_t kMostLooked = 4096;
    for (std::size_t i = dump.operations.size(); i-- > 0 && sites.size() < kMostLooked;) {
      if (!is_collective(dump.operations[i].kind) || group(member.dump, dump.calls[i].group).comm != comm) continue;
      const CallSite& site = dump.sites[to_size(dump.operations[i].site)];
      sites[dump.calls[i].seq] = site.frames.empty() ? "" : fmt::format("{}:{}", site.frames.front().file, site.frames.front().line);
    }
    return sites;
  }

  void add_program(std::size_t d, bool stands) {
    FlightDump& dump = *dumps_[d].dump;
    JobBuilder& builder = intake_.builder();
    FileWarnings warnings(builder, dump.path);
    for (const std::string& warning : dump.warnings) warnings.warn(0, warning);
    if (dump.unknown_calls > 0) {
      warnings.warn(0, fmt::format("{} calls of unknown kinds, the first {}: taken as what the others call there", dump.unknown_calls,
                                   excerpt(dump.unknown_name)));
    }
    intake_.add_to_world({{dumps_[d].rank}});
    Program program{.rank = dumps_[d].rank, .source = builder.source(dump.path), .head_missing = dump.first_record > 0};
    program.tail_missing = !dump.complete;
    if (dump.last_ns > 0) program.last_event = static_cast<double>(dump.last_ns) * 1e-9;
    mark_in_flight(dump);
    place_operations(d, program, warnings);
    add_earlier(d, program);
    const bool idle = std::ranges::none_of(program.operations, is_in_flight);
    if (!program.tail_missing && idle && (stands || !is_older(d)) && !dump.has_unrecorded) {
      program.end = {EndKind::kExited, ProgramEnd::kStatusUnknown};
    } else if (!program.tail_missing && stands) {
      program.end = {EndKind::kUnknown, ProgramEnd::kStatusUnknown};  // stands in a call, for good
    }
    if (program.tail_missing) builder.set_incomplete();
    intake_.add_program(std::move(program));
    dump.operations = {};
    dump.calls = {};
  }

  /// Other members come to calls that this dump lacks: it may have been taken before they were made.
  bool is_older(std::size_t d) const {
    for (const JobGroup& group : groups_.groups) {
      for (const FlightMember& member : group.members) {
        if (member.dump == d && (member.first != 0 ? member.last : calls_without_entries(member, group)) < group.made) return true;
      }
    }
    return false;
  }

  /// Sites and element types of the file become those of the job.
  void set_tables(FlightDump& dump) {
    JobBuilder& builder = intake_.builder();
    std::vector<SiteIndex> sites;
    for (const CallSite& site : dump.sites) sites.push_back(builder.site(site));
    std::vector<DatatypeIndex> datatypes;
    for (const std::string& name : dump.datatypes) datatypes.push_back(builder.datatype(name));
    for (Operation& operation : dump.operations) {
      operation.site = sites[to_size(operation.site)];
      operation.datatype = datatypes[static_cast<std::size_t>(operation.datatype)];
    }
    for (const FlightDump::Uneven& call : dump.uneven) {
      builder.extra_of(dump.operations[call.operation]).received = call.out;
    }
    dump.sites = {};
  }

  /// Number and time of the calls that a reader will look for in the dump.
  void mark_in_flight(FlightDump& dump) {
    for (const FlightDump::InFlight& call : dump.in_flight) {
      OperationExtra& extra = intake_.builder().extra_of(dump.operations[call.operation]);
      if (dump.calls[call.operation].seq != 0) extra.native_seq = dump.calls[call.operation].seq;
      if (call.created_ns > 0) extra.at = static_cast<double>(call.created_ns) * 1e-9;
    }
  }

  void place_operations(std::size_t d, Program& program, FileWarnings& warnings) {
    FlightDump& dump = *dumps_[d].dump;
    std::vector<std::uint32_t> next(dump.groups.size(), 0);
    std::vector<std::uint64_t> unplaced(dump.groups.size(), 0);
    const bool behind = completes_less(d);
    std::size_t kept = 0;
    OperationTable filled;  // used from the first gap on
    bool uses_filled = false;
    const auto keep = [&](const Operation& operation) {
      if (uses_filled) filled.push_back(operation);
      else dump.operations[kept++] = operation;
    };
    for (std::size_t i = 0; i < dump.operations.size(); ++i) {
      Operation operation = dump.operations[i];
      const FlightCall call = dump.calls[i];
      const JobGroup& group = this->group(d, call.group);
      operation.comm = group.comm;
      if (!is_collective(operation.kind)) {
        if (place_message(d, call, behind, operation)) keep(operation);
        continue;
      }
      std::uint32_t& expected = next[call.group];
      const std::uint32_t seq = call.seq != 0 ? call.seq : std::max(expected, 1U);
      if (expected != 0 && seq < expected) {
        if (unplaced[call.group]++ == 0) {
          warnings.warn(0, fmt::format("call {} of {} follows call {}: left out", seq, excerpt(dump.groups[call.group].name), expected - 1));
        }
        continue;
      }
      if (expected != 0 && seq > expected) {
        if (!uses_filled) {
          uses_filled = true;
          filled.assign(dump.operations.begin(), dump.operations.begin() + static_cast<std::ptrdiff_t>(kept));
        }
        fill_gap(d, call.group, expected, seq, filled, warnings);
      }
      expected = seq + 1;
      keep(operation);
    }
    if (!uses_filled) {
      dump.operations.resize(kept);
      program.operations = std::move(dump.operations);
    } else {
      program.operations = std::move(filled);
    }
  }

  /// Peers become job ranks. Where some record begins late, nobody knows which message is which: only those in flight are kept,
  /// for which ranks wait, and their sizes are not compared.
  bool place_message(std::size_t d, const FlightCall& call, bool behind, Operation& operation) {
    const Communicator& comm = intake_.builder().communicator(operation.comm);
    if (operation.peer >= 0 && !comm.members.empty()) {
      if (static_cast<std::size_t>(operation.peer) >= comm.members.size()) return false;
      operation.peer = comm.members[static_cast<std::size_t>(operation.peer)];
    }
    if (operation.peer < 0) operation.peer = kAnyPeer;
    if (operation.peer == dumps_[d].rank && comm.members.empty()) return false;
    if (!any_head_missing_) return true;
    static_cast<void>(call);
    if (!is_in_flight(operation)) return false;
    operation.count = {};
    operation.datatype = {};
    // A rank that does not notice completions has all its messages in flight.
    if (behind) operation.state = OpState::kCompleted;
    return true;
  }

  /// Two calls or more in flight that other members have completed.
  bool completes_less(std::size_t d) const {
    const FlightDump& dump = *dumps_[d].dump;
    std::vector<bool> seen(dump.groups.size(), false);
    for (std::size_t i = 0; i < dump.operations.size(); ++i) {
      const FlightCall& call = dump.calls[i];
      if (!is_collective(dump.operations[i].kind) || call.seq == 0 || !is_in_flight(dump.operations[i]) || seen[call.group]) continue;
      seen[call.group] = true;
      if (call.seq + 1 <= group(d, call.group).completed) return true;
    }
    return false;
  }

  /// Calls between two entries that are not in the dump had completed (dumps of active calls only), or are of a kind that is not
  /// known. They are put in as another member made them, so that what follows stands in its place.
  void fill_gap(std::size_t d, std::uint32_t g, std::uint32_t from, std::uint32_t to, OperationTable& operations,
                FileWarnings& warnings) {
    constexpr std::uint32_t kMostFilled = 100'000;
    const JobGroup& group = this->group(d, g);
    if (to - from > kMostFilled) {
      warnings.warn(0, fmt::format("calls {} to {} of {} are not in it: what follows is not compared", from, to - 1,
                                   excerpt(dumps_[d].dump->groups[g].name)));
      operations.push_back({.kind = OpKind::kOpaque, .flags = kOpGap});
      return;
    }
    for (std::uint32_t seq = from; seq < to; ++seq) {
      Operation filler{.comm = group.comm, .kind = OpKind::kBarrier, .state = OpState::kCompleted};
      if (const Operation* const model = model_of(groups_.group_of[d][g], seq)) {
        filler.kind = model->kind;
        filler.count = model->count;
        filler.datatype = model->datatype;
      }
      operations.push_back(filler);
    }
  }

  /// What the first member with an entry for it called, for the groups in which some dump has a gap.
  void collect_models() {
    std::vector<bool> wanted(groups_.groups.size(), false);
    bool any = false;
    for (std::size_t d = 0; d < dumps_.size(); ++d) {
      const FlightDump& dump = *dumps_[d].dump;
      std::vector<std::uint32_t> last(dump.groups.size(), 0);
      for (std::size_t i = 0; i < dump.operations.size(); ++i) {
        const FlightCall& call = dump.calls[i];
        if (!is_collective(dump.operations[i].kind) || call.seq == 0) continue;
        if (last[call.group] != 0 && call.seq > last[call.group] + 1) any = wanted[groups_.group_of[d][call.group]] = true;
        last[call.group] = call.seq;
      }
    }
    if (!any) return;
    for (std::size_t d = 0; d < dumps_.size(); ++d) {
      const FlightDump& dump = *dumps_[d].dump;
      for (std::size_t i = 0; i < dump.operations.size(); ++i) {
        const std::size_t joined = groups_.group_of[d][dump.calls[i].group];
        if (wanted[joined] && is_collective(dump.operations[i].kind)) models_[joined].try_emplace(dump.calls[i].seq, dump.operations[i]);
      }
    }
  }

  const Operation* model_of(std::size_t joined, std::uint32_t seq) const {
    const auto models = models_.find(joined);
    if (models == models_.end()) return nullptr;
    const auto model = models->second.find(seq);
    return model == models->second.end() ? nullptr : &model->second;
  }

  void add_earlier(std::size_t d, Program& program) {
    for (std::size_t g = 0; g < dumps_[d].dump->groups.size(); ++g) {
      const JobGroup& group = this->group(d, static_cast<std::uint32_t>(g));
      for (const FlightMember& member : group.members) {
        if (member.dump != d || group.made == 0) continue;
        const std::uint32_t calls = member.first != 0 ? member.first - 1 : calls_without_entries(member, group);
        if (calls > 0) program.earlier.push_back({group.comm, calls});
      }
    }
  }

  void warn_of_versions() {
    std::set<std::string> versions;
    for (const RankedDump& ranked : dumps_) {
      if (!ranked.dump->version.empty()) versions.insert(ranked.dump->version);
    }
    if (versions.size() > 1) {
      intake_.builder().warn(fmt::format("ranks wrote dumps of different versions: {}", fmt::join(versions, ", ")));
    }
  }

  std::vector<RankedDump> dumps_;
  JobIntake& intake_;
  JobGroups groups_;
  bool any_head_missing_ = false;
  std::map<std::size_t, std::map<std::uint32_t, Operation>> models_;
};

/// Two dumps that seem to be of one rank: copies of each other, or nobody knows which is to be believed.
void note_rivals(const std::vector<std::unique_ptr<FlightDump>>& dumps, const std::vector<FlightRank>& ranks, ReportedEvidence& reported) {
  constexpr std::size_t kMostTold = 16;
  for (std::size_t i = 0; i < dumps.size(); ++i) {
    if (ranks[i].rank || !ranks[i].rival || reported.contradictions.size() >= kMostTold) continue;
    const std::size_t other = *ranks[i].rival;
    const FlightDump& a = *dumps[other];
    const FlightDump& b = *dumps[i];
    const bool same = a.entries == b.entries && a.last_ns == b.last_ns && a.first_record == b.first_record && a.operations.size() == b.operations.size();
    if (same || !ranks[other].rank) continue;
    reported.contradictions.push_back({fmt::format("{} and {} both seem to be of rank {} and hold different calls ({} and {} entries): the first is used", a.path,
                                                   b.path, *ranks[other].rank, a.entries, b.entries),
                                       {*ranks[other].rank}});
  }
}

}  // namespace

std::vector<std::optional<Error>> join_flight_dumps(std::vector<std::unique_ptr<ParsedEvidence>> parsed, JobIntake& intake) {
  std::vector<std::unique_ptr<FlightDump>> dumps;
  for (auto& one : parsed) dumps.emplace_back(static_cast<FlightDump*>(one.release()));
  std::vector<std::optional<Error>> failures(dumps.size());
  const std::vector<FlightRank> ranks = flight_ranks(dumps);
  note_rivals(dumps, ranks, intake.reported());
  std::vector<RankedDump> ranked;
  for (std::size_t i = 0; i < dumps.size(); ++i) {
    if (ranks[i].rank) {
      ranked.push_back({*ranks[i].rank, dumps[i].get()});
    } else {
      failures[i] = Error{ErrorCode::kMalformed, fmt::format("{}: {}", dumps[i]->path, ranks[i].why)};
    }
  }
  if (ranked.empty()) return failures;
  std::ranges::sort(ranked, {}, &RankedDump::rank);
  intake.set_library(Library::kTorch, ranked.front().dump->path);
  FlightJob(std::move(ranked), intake).read();
  return failures;
}

}  // namespace lockstep
