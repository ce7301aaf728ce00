// See the header.
#include "read/trace_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "model/gloo.h"
#include "model/via_frame.h"
#include "read/native_sites.h"
#include "read/native_names.h"
#include "read/trace_grown.h"
#include "read/trace_history.h"
#include "read/trace_inputs.h"
#include "read/trace_process.h"
#include "read/trace_program.h"
#include "read/trace_ring.h"
#include "read/torch_site.h"
#include "read/trace_tables.h"

namespace lockstep {
namespace {

/// A communicator of the job, joined from the files of its members.
struct JobComm {
  CommIndex index = kNoComm;
  std::vector<std::int32_t> members{};
  bool comparable = true;
  bool compare_arguments = true;
};

class TraceSet {
 public:
  TraceSet(std::vector<TraceInput> inputs, JobIntake& intake, std::size_t most_records_to_replay)
      : inputs_(std::move(inputs)), intake_(intake), most_records_to_replay_(most_records_to_replay) {}

  void read() {
    choose_inputs(inputs_, builder());
    join_communicators();
    for (const TraceInput& input : inputs_) names_.push_back(names_of(input));
    programs_.resize(inputs_.size());
    const std::vector<HistoryInput> history = history_inputs();
    if (record_count() > most_records_to_replay_ && agrees_by_fingerprints(history)) {
      take_totals();
    } else {
      for (std::size_t i = 0; i < inputs_.size(); ++i) {
        programs_[i] = read_trace_program(inputs_[i].tables, inputs_[i].ring, names_[i], intake_);
        programs_[i].program.rank = inputs_[i].rank();
      }
      check_lost_calls(history, builder());
      trim_messages(history, intake_);
    }
    for (std::size_t i = 0; i < inputs_.size(); ++i) add_program(inputs_[i], programs_[i]);
    add_facts_of_nccl();
  }

 private:
  JobBuilder& builder() { return intake_.builder(); }

  std::size_t record_count() const {
    std::size_t records = 0;
    for (const TraceInput& input : inputs_) {
      records += input.ring.blocks.size() * (input.tables.header.block_bytes / trace::kRecordBytes);
    }
    return records;
  }

  std::vector<HistoryInput> history_inputs() {
    std::vector<HistoryInput> history;
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      history.push_back({&inputs_[i].tables, &inputs_[i].ring, &names_[i], &programs_[i]});
    }
    return history;
  }

  /// Programs without calls, but with the number of those that were made.
  void take_totals() {
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      Program& program = programs_[i].program;
      program.rank = inputs_[i].rank();
      for (std::size_t id = 0; id < names_[i].comms.size(); ++id) {
        const std::uint64_t calls = inputs_[i].tables.comms[id].now.calls;
        if (names_[i].comms[id].index == kNoComm || calls == 0) continue;
        program.earlier.push_back(
            {names_[i].comms[id].index, static_cast<std::uint32_t>(std::min<std::uint64_t>(calls, 0xffff'fff0U))});
      }
    }
    builder().warn("agreement is shown by fingerprints of all calls and by the end of every process; the calls were not replayed");
  }

  /// Those whom a grow added know the new communicator by its unique id, the others as a child of theirs. One of them has both, in its
  /// table and in its call; recorders before the table had it leave the call.
  void link_grown() {
    std::map<std::uint64_t, std::uint64_t> identity;
    for (const TraceInput& input : inputs_) {
      for (const auto& [by_id, by_parent] : grown_identities(input.tables, input.ring)) identity[by_id] = by_parent;
      for (const auto& [by_id, by_parent] : input.tables.aliases) identity[by_id] = by_parent;
    }
    if (identity.empty()) return;
    for (TraceInput& input : inputs_) {
      for (TraceComm& comm : input.tables.comms) {
        const auto other = comm.known() && is_nccl(comm) ? identity.find(comm.record.identity) : identity.end();
        if (other != identity.end()) comm.record.identity = other->second;
      }
    }
  }

  void join_communicators() {
    link_grown();
    find_libraries();
    find_nccl_members();
    warn_of_unseen_nccl();
    for (const TraceInput& input : inputs_) {
      for (std::size_t id = 0; id < input.tables.comms.size(); ++id) {
        const TraceComm& comm = input.tables.comms[id];
        if (comm.known() && comm.record.identity != 0 && !is_elsewhere(input, id)) join(comm, input);
      }
    }
  }

  static bool is_elsewhere(const TraceInput& input, std::size_t comm) {
    return comm < input.part.elsewhere.size() && input.part.elsewhere[comm];
  }
  static bool is_nccl(const TraceComm& comm) { return comm.record.library == trace::Library::kNccl; }
  static bool is_torch(const TraceComm& comm) { return comm.record.library == trace::Library::kTorch; }

  static Library library_of(const TraceComm& comm) {
    return is_nccl(comm) ? Library::kNccl : is_torch(comm) ? kGlooLibrary : Library::kMpi;
  }
  /// Whose rules hold for the job as a whole. Groups of torch may stand beside NCCL or MPI, and MPI beside NCCL.
  Library job_library() const { return has_nccl_ ? Library::kNccl : has_mpi_ || !has_torch_ ? Library::kMpi : kGlooLibrary; }

  void find_libraries() {
    for (const TraceInput& input : inputs_) {
      for (const TraceComm& comm : input.tables.comms) {
        if (!comm.known()) continue;
        has_torch_ = has_torch_ || is_torch(comm);
        has_mpi_ = has_mpi_ || (!is_torch(comm) && !is_nccl(comm));
      }
    }
  }

  /// Ranks with GPUs none of whose calls came by: nothing can be said about what they did.
  void warn_of_unseen_nccl() {
    if (has_nccl_) return;
    const auto unseen = std::ranges::count_if(inputs_, [](const TraceInput& input) { return input.tables.uses_device; });
    if (unseen == 0) return;
    builder().warn(fmt::format("the recorder was loaded in {} processes that took a GPU, and saw no call of NCCL: it is linked statically, or "
                               "opened by name (lockstep doctor -- CMD tells), or nothing communicated", unseen));
    builder().set_incomplete();
    unseen_nccl_ = true;
  }

  /// NCCL tells a member its own rank only: the lists are put together from all files.
  void find_nccl_members() {
    std::vector<std::int32_t> known;
    for (const TraceInput& input : inputs_) {
      known.push_back(input.rank());
      job_ranks_ = std::max(job_ranks_, input.tables.job_ranks());
      for (std::size_t id = 0; id < input.tables.comms.size(); ++id) {
        const TraceComm& comm = input.tables.comms[id];
        if (!comm.known() || !is_nccl(comm) || is_elsewhere(input, id)) continue;
        has_nccl_ = true;
        if (comm.record.identity == 0 || comm.record.nranks <= 0 || std::cmp_greater(comm.record.nranks, member_budget_)) continue;
        std::vector<std::int32_t>& members = nccl_members_[comm.record.identity];
        if (members.empty()) member_budget_ -= static_cast<std::size_t>(comm.record.nranks);
        if (members.empty()) members.resize(static_cast<std::size_t>(comm.record.nranks), -1);
        if (std::cmp_not_equal(members.size(), comm.record.nranks)) {
          // Told as a finding where the calls can be compared: the largest has a place for everyone.
          if (sizes_differ_.insert(comm.record.identity).second) {
            builder().warn(fmt::format("ranks differ about the size of a communicator of NCCL: {} and {}", members.size(), comm.record.nranks));
          }
          if (std::cmp_less(members.size(), comm.record.nranks)) {
            member_budget_ -= static_cast<std::size_t>(comm.record.nranks) - members.size();
            members.resize(static_cast<std::size_t>(comm.record.nranks), -1);
          }
        }
        if (comm.record.rank < 0 || comm.record.rank >= comm.record.nranks) continue;
        std::int32_t& member = members[static_cast<std::size_t>(comm.record.rank)];
        if (member >= 0 && member != input.rank()) {
          builder().warn(fmt::format("ranks {} and {} both are rank {} of one communicator of NCCL", member, input.rank(), comm.record.rank));
        } else {
          member = input.rank();
        }
      }
    }
    std::ranges::sort(known);
    if (job_ranks_ == 0) {
      for (const auto& [identity, members] : nccl_members_) job_ranks_ = std::max(job_ranks_, static_cast<std::int32_t>(members.size()));
    }
    for (auto& [identity, members] : nccl_members_) {
      if (fill_members(members, known, job_ranks_)) continue;
      if (sizes_differ_.contains(identity)) {  // never made: a place too many is what the finding is about, not a rank to look for
        std::erase(members, -1);
        continue;
      }
      const auto missing = std::ranges::count(members, -1);
      builder().warn(fmt::format("{} of the {} ranks of a communicator of NCCL left no record of it, and nothing says which ranks they are: "
                                 "its calls are not compared", missing, members.size()));
      builder().set_incomplete();
      members.clear();
    }
  }

  void join(const TraceComm& comm, const TraceInput& input) {
    const auto [at, added] = comms_.try_emplace(comm.record.identity);
    JobComm& joined = at->second;
    if (added) {
      if (is_nccl(comm)) joined.members = nccl_members_[comm.record.identity];
      else if (auto members = expand_ranges(comm.ranges, comm.record.nranks)) joined.members = std::move(*members);
      const std::string name = comm.name.empty() ? unnamed(comm.record) : name_in_reports(comm);
      const std::string_view library = is_torch(comm) ? "torch" : library_name(library_of(comm));
      joined.index = builder().communicator(fmt::format("{}:{:016x}", library, comm.record.identity), name, joined.members);
      if (library_of(comm) != job_library()) builder().set_library(joined.index, library_of(comm));
    } else if (!comm.name.empty() && builder().communicator(joined.index).name != name_in_reports(comm)) {
      builder().rename(joined.index, name_in_reports(comm));
    }
    if (added && is_torch(comm) && !joined.members.empty()) {
      std::uint64_t hash = 0;
      for (const std::int32_t member : joined.members) hash += trace::mix(static_cast<std::uint64_t>(member), 1);
      torch_groups_.emplace(hash, joined.members);
    }
    intake_.add_to_world(joined.members);
    // Positions of a late starter count from its start; without a state they are only known while nothing is lost.
    const bool placed = comm.has_state ? (comm.flags & trace::kCommLateStart) == 0 : !input.ring.head_missing;
    if (!comm.comparable() || !placed || joined.members.empty()) joined.comparable = false;
    if ((comm.flags & trace::kCommUnverified) != 0 && joined.compare_arguments) {
      joined.compare_arguments = false;
      builder().warn(fmt::format("{}: a call on {} had an argument of unknown meaning: of its calls only kind and root are compared",
                                 input.tables.path, excerpt(comm.name)));
      builder().set_incomplete();
    }
  }

  /// torch numbers its groups, or hashes their members: both say little alone.
  static std::string name_in_reports(const TraceComm& comm) {
    if (!is_torch(comm) || comm.name.find_first_not_of("0123456789abcdef") != std::string::npos) return comm.name;
    if (static_cast<OpKind>(comm.record.kind) == OpKind::kInit) return "default_pg";
    return fmt::format("group {}", std::string_view(comm.name).substr(0, 8));
  }

  std::string unnamed(const trace::CommRecord& record) {
    const auto kind = static_cast<OpKind>(record.kind);
    if (record.library == trace::Library::kNccl) {
      const std::string_view stem = kind == OpKind::kInit ? "comm" : op_name(kind);
      return fmt::format("{}{}", stem, unnamed_[kind]++);
    }
    return fmt::format("{}{}", op_class(kind) == OpClass::kCreation ? op_name(kind) : "comm", record.creation);
  }

  TraceNames names_of(const TraceInput& input) {
    const TraceTables& tables = input.tables;
    TraceNames names;
    names.nccl = has_nccl_;
    names.gloo = has_torch_;
    names.creations_apart = std::ranges::none_of(inputs_, [](const TraceInput& other) { return other.ring.head_missing; });
    names.torch_groups = &torch_groups_;
    names.device = input.part.device;
    for (std::size_t id = 0; id < tables.comms.size(); ++id) {
      const TraceComm& comm = tables.comms[id];
      TraceCommView view;
      if (is_elsewhere(input, id)) {
        names.comms.push_back({.elsewhere = true});
        continue;
      }
      if (comm.known() && comm.record.identity != 0) {
        const JobComm& joined = comms_.at(comm.record.identity);
        if (is_nccl(comm) && (comm.flags & trace::kCommConcurrent) != 0) view.shared_by_threads = joined.index;
        if (joined.comparable) view = {joined.index, joined.members, joined.compare_arguments};
      }
      view.nccl = comm.known() && is_nccl(comm);
      view.gloo = comm.known() && is_torch(comm);
      if (view.nccl && sizes_differ_.contains(comm.record.identity)) view.stated_size = comm.record.nranks;
      names.comms.push_back(view);
    }
    for (const TraceSite& site : tables.sites) names.sites.push_back(site_of(tables, site));
    for (const TraceNamed& type : tables.datatypes) {
      names.datatypes.push_back(builder().datatype(name_of(datatypes_[is_nccl_name(type)], type, datatype_from_native_name(type.name))));
    }
    for (const TraceNamed& redop : tables.redops) {
      names.redops.push_back(builder().redop(name_of(redops_[is_nccl_name(redop)], redop, redop_from_native_name(redop.name))));
    }
    return names;
  }

  /// Names that the ranks compare: one name for each hash. `usual` is how reports spell it, where that is one hash alone.
  struct NameTable {
    std::map<std::uint64_t, std::string> by_hash;
    std::set<std::string> taken;
  };
  static bool is_nccl_name(const TraceNamed& named) { return named.name.starts_with("nccl"); }
  static std::string name_of(NameTable& table, const TraceNamed& named, std::string_view usual) {
    if (named.name.empty()) return {};
    const auto [at, added] = table.by_hash.try_emplace(named.hash);
    if (!added) return at->second;
    std::string name(usual.empty() ? std::string_view(named.name) : usual);
    if (table.taken.contains(name)) name = named.name;
    for (int i = 2; table.taken.contains(name); ++i) name = fmt::format("{}#{}", named.name, i);
    table.taken.insert(name);
    return at->second = name;
  }

  /// In a program of torch the lines of all calls read alike.
  static CallSite job_site_of_torch(const std::vector<Frame>& frames) {
    CallSite site = torch_site(frames);
    if (!site.frames.front().file.empty() && via_of(site.frames).empty()) site.frames.push_back(via_frame(kViaTorch));
    return site;
  }

  SiteIndex site_of(const TraceTables& tables, const TraceSite& site) {
    if (!site.python.empty()) return builder().site(has_torch_ ? job_site_of_torch(site.python) : torch_site(site.python));
    if (site.address == 0) return SiteIndex{};
    const bool known = site.module < tables.modules.size();
    const TraceModule& module = known ? tables.modules[site.module] : kNoModule;
    const std::uint64_t offset = site.module == 0 ? site.address : site.file_offset;
    if (!intake_.native_lookup()) return builder().site({{offset_frame(module.path, offset)}});
    return builder().site({native_.frames(module.path, module.build_id, offset)});
  }

  void add_facts_of_nccl() {
    if (!has_nccl_) return;
    int version = 0;
    bool implicit = true;
    for (const TraceInput& input : inputs_) {
      const int own = input.tables.nccl_version;
      if (own != 0 && (version == 0 || own < version)) version = own;
      implicit = implicit && input.tables.implicit_launch_order;
    }
    builder().set_library_version(version);
    builder().set_implicit_launch_order(implicit);
  }

  void add_program(const TraceInput& input, TraceProgram& read) {
    const TraceTables& tables = input.tables;
    Program& program = read.program;
    program.source = builder().source(tables.path);
    program.end = end_of_process(tables);
    program.place = {.host = tables.host, .pid = tables.header.pid};
    if (tables.header.local_rank >= 0) program.place.local_rank = tables.header.local_rank;
    if (input.part.device >= 0) program.place.device = std::to_string(input.part.device);
    program.tail_missing = program.tail_missing || tables.cut || tables.has_state(trace::kStateStopped) ||
                           tables.header.records_dropped != 0 || tables.has_state(trace::kStateForkedFrom) ||
                           (unseen_nccl_ && tables.uses_device);
    const bool ended = program.end.kind != EndKind::kUnknown && program.end.kind != EndKind::kRunning;
    if (!ended && !program.tail_missing) mark_held(program, input.ring.several_threads);
    warn_about(tables, read);
    intake_.set_library(job_library(), tables.path);
    if (const std::int32_t ranks = has_nccl_ ? job_ranks_ : tables.job_ranks(); ranks > 0) {
      ranks_expected_ = std::max(ranks_expected_, static_cast<std::size_t>(ranks));
      intake_.set_ranks_expected(ranks_expected_);
    }
    intake_.add_to_world({&program.rank, 1});
    intake_.add_program(std::move(program));
  }

  /// The process is gone or stands, and is inside these calls. (Whether a live one stands a second look shows.)
  /// Where a process has several threads, a wait names its own, so that nobody takes the others to stand in it, too.
  void mark_held(Program& program, bool several_threads) {
    for (auto at = program.operations.rbegin(); at != program.operations.rend() && at->state == OpState::kEntered; ++at) {
      at->flags |= kOpHeld;
      if (several_threads && is_host_wait(at->kind)) builder().extra_of(*at).thread = "its own";
    }
  }

  void warn_about(const TraceTables& tables, const TraceProgram& read) {
    FileWarnings warnings(builder(), tables.path);
    for (const std::string& warning : read.warnings) warnings.warn(0, warning);
    for (const std::string& note : tables.notes) {
      constexpr std::size_t kLongestNote = 240;  // the recorder writes shorter ones
      warnings.warn(0, fmt::format("the recorder says: '{}'", note.substr(0, kLongestNote)));
      // Calls of torch may have been made that no file holds.
      if (note.find("of torch are not all recorded") != std::string::npos) builder().set_incomplete();
    }
    if (tables.cut) warnings.warn(0, fmt::format("is cut: {} of {} bytes", tables.contents.size(), tables.header.file_bytes));
    if (tables.side_damaged) warnings.warn(0, "its side records are damaged: names, sites and communicators may be missing");
    if (tables.header.records_dropped != 0) {
      warnings.warn(0, fmt::format("{} records found no place: calls are missing", tables.header.records_dropped));
    }
    if (tables.has_state(trace::kStateSideFull)) warnings.warn(0, "its side area is full: some names and sites are missing");
    if (tables.cut || tables.side_damaged || read.program.tail_missing) builder().set_incomplete();
  }

  static inline const TraceModule kNoModule{};

  std::vector<TraceInput> inputs_;
  std::vector<TraceNames> names_;       // by input, as programs_
  std::vector<TraceProgram> programs_;
  JobIntake& intake_;
  std::size_t most_records_to_replay_;
  std::map<std::uint64_t, JobComm> comms_;  // by identity
  std::map<std::uint64_t, std::vector<std::int32_t>> nccl_members_;  // by identity
  std::map<std::uint64_t, std::vector<std::int32_t>> torch_groups_;  // by the sum over members that a creation holds
  std::set<std::uint64_t> sizes_differ_;  // identities whose members state different sizes
  std::map<OpKind, int> unnamed_;
  bool has_nccl_ = false;
  bool has_mpi_ = false;
  bool has_torch_ = false;
  std::size_t member_budget_ = std::size_t{1} << 24;  ///< places in all lists of members; a file may claim any size
  bool unseen_nccl_ = false;  ///< calls of NCCL may have been made that no file holds
  std::int32_t job_ranks_ = 0;
  // By library, MPI first: f32 is f32 in both, and calls of one never meet those of the other.
  std::array<NameTable, 2> datatypes_{};
  std::array<NameTable, 2> redops_{};
  NativeSites native_;
  std::size_t ranks_expected_ = 0;
};

}  // namespace

std::vector<std::optional<Error>> read_traces(std::span<const EvidenceFile> files, JobIntake& intake) {
  return read_traces(files, intake, kMostRecordsToReplay);
}

std::vector<std::optional<Error>> read_traces(std::span<const EvidenceFile> files, JobIntake& intake,
                                              std::size_t most_records_to_replay) {
  std::vector<std::optional<Error>> errors(files.size());
  std::vector<TraceInput> inputs;
  for (std::size_t i = 0; i < files.size(); ++i) {
    Result<TraceTables> tables = read_trace_tables(files[i].path, files[i].contents);
    if (!tables) {
      errors[i] = tables.error();
      continue;
    }
    tables->is_copy = files[i].is_copy;
    TraceInput input{.tables = *std::move(tables)};
    input.ring = index_ring(input.tables);
    inputs.push_back(std::move(input));
  }
  if (!inputs.empty()) TraceSet(std::move(inputs), intake, most_records_to_replay).read();
  return errors;
}

}  // namespace lockstep
