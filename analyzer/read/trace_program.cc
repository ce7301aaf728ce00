// See the header. One pass; 10^8 calls go through `add`, so it looks things up by index only.
#include "read/trace_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

#include "model/gloo.h"
#include "read/trace_bytes.h"
#include "read/trace_calls.h"
#include "read/trace_completions.h"
#include "read/trace_counts.h"
#include "read/trace_device_calls.h"

namespace lockstep {
namespace {

using trace::CallRecord;

/// What must agree in the collectives of each kind, beyond the kind (schemas/FORMAT.md, section 4).
struct KindFacts {
  bool is_collective = false;  ///< of class kCollective: no creation, no teardown
  bool root = false;
  bool type = false;  ///< element type, and count or vector of counts
  bool reduction = false;
  bool vector = false;
  bool pairwise = false;  ///< counts for each member, of which nothing must agree but between two
};

constexpr KindFacts facts_of(OpKind kind) {
  if (op_class(kind) != OpClass::kCollective) return {.root = has_root(kind)};
  const bool free_type = kind == OpKind::kGatherV || kind == OpKind::kScatterV || kind == OpKind::kAllToAllV ||
                         kind == OpKind::kAllToAllW || kind == OpKind::kBarrier;
  return {.is_collective = true,
          .root = has_root(kind),
          .type = !free_type,
          .reduction = has_reduction(kind),
          .vector = kind == OpKind::kAllGatherV || kind == OpKind::kReduceScatterV,
          .pairwise = kind == OpKind::kGatherV || kind == OpKind::kScatterV || kind == OpKind::kAllToAllV};
}

/// By the kind as a record spells it: asked for every call, and hostile bytes hold any.
constexpr auto kFacts = [] {
  std::array<KindFacts, 256> facts{};
  for (std::size_t kind = 0; kind < facts.size(); ++kind) facts[kind] = facts_of(static_cast<OpKind>(kind));
  return facts;
}();

class ProgramReader {
 public:
  ProgramReader(const TraceTables& tables, const RingIndex& ring, const TraceNames& names, JobIntake& intake)
      : tables_(tables),
        ring_(ring),
        names_(names),
        intake_(intake),
        bytes_(tables.contents),
        counts_(tables, names, intake.builder()),
        completions_(names, intake, result_),
        device_calls_(names, intake, result_),
        positions_(names.comms.size()) {}

  TraceProgram read() {
    program().head_missing = ring_.head_missing;
    reserve();
    if (ring_.several_threads) read_by_time();
    else read_in_order();
    device_calls_.finish();
    completions_.settle_errors();
    finish_positions();
    return std::move(result_);
  }

 private:
  /// What was seen of one communicator: the position of its first call here, and the one that comes next.
  struct Positions {
    bool seen = false;
    std::uint32_t first = 0;
    std::uint32_t next = 0;
  };

  Program& program() { return result_.program; }
  OperationTable& operations() { return result_.program.operations; }

  void reserve() {
    std::size_t records = 0;
    for (const RingBlock& block : ring_.blocks) records += (block.end - block.offset) / trace::kRecordBytes;
    // The last block is rarely full; a whole file of one block is small.
    operations().reserve(records);
  }

  void read_in_order() {
    for (const RingBlock& block : ring_.blocks) {
      const bool is_last = &block == &ring_.blocks.back();
      const auto visit = [this, is_last](const CallRecord& call, const CallExtensions& extensions, bool left) {
        add(call, extensions, call.return_ticks != 0 || left || !is_last);
      };
      const bool intact = visit_block(bytes_, block, visit);
      if (!intact) lose_history();
    }
  }

  /// Threads are merged by the times at which calls began. Calls that have not returned come last, and together: each
  /// thread stands in its own.
  void read_by_time() {
    struct Entry {
      CallRecord call;
      CallExtensions extensions;
      bool returned = false;
    };
    std::vector<Entry> entries;
    const auto collect = [&](const RingBlock& block, bool open_only) {
      const bool intact = visit_block(bytes_, block, [&](const CallRecord& call, const CallExtensions& extensions, bool left) {
        const bool returned = call.return_ticks != 0 || left;
        if (!open_only || !returned) entries.push_back({call, extensions, returned});
      });
      if (intact) return;
      entries.clear();
      program().head_missing = true;
    };
    for (const RingBlock& block : ring_.stranded) collect(block, true);
    for (const RingBlock& block : ring_.blocks) collect(block, false);
    std::ranges::stable_sort(entries, {}, [](const Entry& entry) { return std::tuple(!entry.returned, entry.call.enter_ticks); });
    const auto open = std::ranges::find(entries, false, &Entry::returned);
    const bool several_open = entries.end() - open > 1;
    for (auto entry = entries.begin(); entry != entries.end(); ++entry) {
      const std::size_t before = operations().size();
      add(entry->call, entry->extensions, entry->returned);
      if (entry->returned || !several_open) continue;
      for (std::size_t i = before; i < operations().size(); ++i) operations()[i].launch = kOpenLaunch;
    }
  }

  /// Everything up to here is worth nothing: calls are missing behind it.
  void lose_history() {
    operations().clear();
    result_.messages.clear();
    completions_.forget();
    device_calls_.forget();
    program().head_missing = true;
    for (Positions& positions : positions_) {
      if (positions.seen) positions.first = positions.next;
    }
  }

  void finish_positions() {
    for (std::size_t id = 0; id < positions_.size(); ++id) {
      const TraceCommView& view = names_.comms[id];
      if (view.index == kNoComm) continue;
      std::uint32_t earlier = positions_[id].first;
      if (!positions_[id].seen && program().head_missing) {
        earlier = static_cast<std::uint32_t>(std::min<std::uint64_t>(tables_.comms[id].now.calls, 0xffff'fff0U));
      }
      if (earlier != 0) program().earlier.push_back({view.index, earlier});
    }
  }

  /// Nearly all calls of a long run are plain collectives: they are made in place, and all else is left to `add_other`.
  void add(const CallRecord& call, const CallExtensions& extensions, bool returned) {
    ++number_;
    last_ticks_ = std::max({last_ticks_, call.enter_ticks, call.return_ticks});
    const TraceCommView* view = names_.comparable(call.comm);
    if (names_.nccl && call.comm < names_.comms.size() &&
        TraceDeviceCalls::takes(call, extensions, call.comm != 0 ? &names_.comms[call.comm] : nullptr)) [[unlikely]] {
      Operation operation;
      begin(operation, call, returned);
      const auto place = [this](std::uint32_t comm, std::uint32_t seq) { return take_position(comm, seq); };
      device_calls_.add(call, extensions, call.comm != 0 ? &names_.comms[call.comm] : nullptr, operation, place);
      return;
    }
    if (kFacts[call.kind].is_collective && (call.flags & kUndecided) == 0 && view != nullptr && call.seq != trace::kNoPosition)
        [[likely]] {
      if (!take_position(call.comm, call.seq)) return;
      Operation& operation = operations().emplace_back();
      begin(operation, call, returned);
      fill_collective(call, extensions, *view, operation);
    } else {
      add_other(call, extensions, returned);
    }
  }

  [[gnu::noinline]] void add_other(const CallRecord& call, const CallExtensions& extensions, bool returned) {
    const OpClass what = op_class(static_cast<OpKind>(call.kind));
    Operation operation;
    begin(operation, call, returned);
    if ((call.flags & kUndecided) != 0 || what == OpClass::kNone || what == OpClass::kOpaque) {
      operations().push_back(opaque_call(operation, extensions.name.empty() ? op_name(operation.kind) : std::string_view(extensions.name), intake_));
    } else if (is_collective(operation.kind)) {
      add_collective(call, extensions, operation);
    } else if (what == OpClass::kPointToPoint) {
      add_message(call, extensions, operation);
    } else if (what == OpClass::kCompletion) {
      completions_.add(call, extensions, operation);
    } else {
      operations().push_back(operation);
    }
  }

  /// What every operation has.
  void begin(Operation& operation, const CallRecord& call, bool returned) const {
    operation.site = names_.site(call.call_site);
    operation.line = number_;
    operation.kind = static_cast<OpKind>(call.kind);
    operation.state = returned ? OpState::kCompleted : OpState::kEntered;
  }

  void add_collective(const CallRecord& call, const CallExtensions& extensions, Operation operation) {
    if (call.comm == 0 && operation.kind == OpKind::kInit) {
      operations().push_back(operation);
      return;
    }
    if (call.comm == 0 && operation.kind == OpKind::kGrow && operation.state == OpState::kCompleted && call.result == 0) {
      operations().push_back(marker_of(operation, "joins a communicator that grows", intake_));  // and is in it: what it does there follows
      return;
    }
    const TraceCommView* view = names_.comparable(call.comm);
    if (view == nullptr || (call.seq == trace::kNoPosition && operation.state != OpState::kCompleted)) {
      operations().push_back(opaque_call(operation, op_name(operation.kind), intake_));
      return;
    }
    if (call.seq == trace::kNoPosition) {  // made by a part of the communicator: it has no position there
      operations().push_back(operation);
      return;
    }
    if (!take_position(call.comm, call.seq)) return;
    if (view->gloo && op_class(operation.kind) == OpClass::kCreation && operation.kind != OpKind::kInit) {
      add_group_of_torch(call, extensions, *view, operation);
      return;
    }
    fill_collective(call, extensions, *view, operations().emplace_back(operation));
  }

  void add_group_of_torch(const CallRecord& call, const CallExtensions& extensions, const TraceCommView& view, Operation operation) {
    JobBuilder& builder = intake_.builder();
    operation.comm = view.index;
    if (names_.creations_apart) {
      operation.comm = builder.communicator(builder.communicator(view.index).id + ":creations", "process groups", view.members);
      if (builder.communicator(view.index).library != Library::kUnknown) builder.set_library(operation.comm, kGlooLibrary);
    }
    if (call.result != 0 && operation.state != OpState::kEntered) operation.flags |= kOpFailed;
    if (extensions.has_creation) operation.extra = group_extra(extensions.creation, view);
    operations().push_back(operation);
  }

  /// Who is in it. A group that no record names any further is compared by nothing.
  std::uint32_t group_extra(const trace::CreationRecord& creation, const TraceCommView& view) {
    OperationExtra extra;
    if (creation.members == 0 || std::cmp_equal(creation.members, view.members.size())) {
      extra.members.assign(view.members.begin(), view.members.end());
    } else if (names_.torch_groups != nullptr) {
      const auto known = names_.torch_groups->find(creation.group_hash);
      if (known != names_.torch_groups->end() && std::cmp_equal(known->second.size(), creation.members)) extra.members = known->second;
    }
    std::ranges::sort(extra.members);
    return extra.members.empty() ? 0 : intake_.builder().extra(std::move(extra));
  }

  /// `operation` is the last one of the program.
  void fill_collective(const CallRecord& call, const CallExtensions& extensions, const TraceCommView& view, Operation& operation) {
    const KindFacts& facts = kFacts[call.kind];
    operation.comm = view.index;
    operation.seq = call.seq;
    if (call.peer >= 0 && facts.root) operation.peer = view.rank_of(call.peer);
    if ((call.flags & trace::kCallNonblocking) != 0) [[unlikely]] set_pending(call, operation);
    if (view.gloo) {
      completions_.note_torch_call();
      if (call.result != 0 && operation.state != OpState::kEntered) operation.flags |= kOpFailed;
    }
    if (view.compare_arguments && facts.type) {
      operation.datatype = names_.datatype(call.datatype);
      if (facts.reduction) operation.redop = names_.redop(call.redop);
      if (!facts.vector) operation.count = Count::of(call.count);
      else counts_.add_shared(extensions, operation);
    } else if (facts.pairwise && view.compare_arguments && (call.flags & trace::kCallOpaqueArgs) == 0) [[unlikely]] {
      counts_.add_pairwise(call, extensions, view, operation);
    }
    if (extensions.has_creation && operation.kind == OpKind::kSplit) [[unlikely]] add_split(extensions.creation, operation);
  }

  [[gnu::noinline]] void set_pending(const CallRecord& call, Operation& operation) {
    operation.flags |= kOpNonblocking;
    if (operation.state == OpState::kCompleted) operation.state = OpState::kEnqueued;
    if (call.aux != 0) operation.handle = completions_.open(call.aux, operations().size() - 1);
  }

  [[gnu::noinline]] void add_split(const trace::CreationRecord& creation, Operation& operation) {
    const std::string color = creation.color == trace::kNoColor ? "undefined" : std::to_string(creation.color);
    operation.extra = intake_.builder().extra({.color = color, .key = std::to_string(creation.key)});
  }

  /// False: the call cannot be placed, and is left out.
  bool take_position(std::uint32_t comm, std::uint32_t seq) {
    Positions& positions = positions_[comm];
    if (positions.seen && seq == positions.next) [[likely]] {
      positions.next = seq + 1;
      return true;
    }
    return take_other_position(comm, seq);
  }

  [[gnu::noinline]] bool take_other_position(std::uint32_t comm, std::uint32_t seq) {
    Positions& positions = positions_[comm];
    if (!positions.seen) {
      // Without a lost head the first call is number 0, unless the recorder came late.
      positions = {.seen = true, .first = seq, .next = seq};
    } else {
      if (seq < positions.next) {
        if (!warned_order_) result_.warnings.emplace_back("positions of collectives go backwards: those calls are left out");
        warned_order_ = program().tail_missing = true;
        return false;
      }
      result_.warnings.push_back(fmt::format("collectives {} to {} of communicator {} are missing: what comes before is left out",
                                             positions.next, seq - 1, comm));
      lose_history();
      positions.first = seq;
    }
    positions.next = seq + 1;
    return true;
  }

  void add_message(const CallRecord& call, const CallExtensions& extensions, Operation operation) {
    const TraceCommView* view = names_.comparable(call.comm);
    if (view == nullptr && call.peer != trace::kProcNull) {
      operations().push_back(opaque_call(operation, op_name(operation.kind), intake_));
      return;
    }
    if (extensions.has_half) operation.launch = ++launches_;
    if (operation.kind == OpKind::kIbsend || is_immediate(operation.kind)) operation.flags |= kOpNonblocking;
    if (operation.nonblocking() && operation.state == OpState::kCompleted) operation.state = OpState::kEnqueued;
    Operation first = operation;
    if (operation.nonblocking() && call.detail != 0 && call.peer != trace::kProcNull) {
      first.handle = completions_.open(call.detail, operations().size());
    }
    add_half(view, {call.peer, call.aux, call.seq, call.count, call.datatype}, first);
    if (!extensions.has_half) return;
    operation.kind = OpKind::kRecv;
    const trace::SecondHalfRecord& half = extensions.half;
    add_half(view, {half.peer, half.tag, half.seq, half.count, half.datatype}, operation);
  }

  struct Half {
    std::int32_t peer;
    std::uint32_t tag, seq;
    std::uint64_t count;
    std::uint16_t datatype;
  };

  void add_half(const TraceCommView* view, const Half& half, Operation operation) {
    if (half.peer == trace::kProcNull || view == nullptr) {
      operations().push_back(marker_of(operation, "message with MPI_PROC_NULL", intake_));
      return;
    }
    if (half.peer == trace::kAnySource) {
      operation.peer = kAnyPeer;
    } else if (operation.peer = view->rank_of(half.peer); operation.peer == kNoPeer) {
      operations().push_back(opaque_call(operation, op_name(operation.kind), intake_));
      return;
    }
    operation.comm = view->index;
    operation.tag = half.tag == trace::kAnyTagWord ? kAnyTag : half.tag;
    operation.count = Count::of(half.count);
    operation.datatype = names_.datatype(half.datatype);
    result_.messages.push_back({static_cast<std::uint32_t>(operations().size()), half.seq});
    operations().push_back(operation);
    if (view->gloo) completions_.note_torch_call();
  }

 public:
  std::uint64_t last_ticks() const { return last_ticks_; }

 private:
  static constexpr std::uint32_t kOpenLaunch = 0xffff'ffff;
  static constexpr std::uint8_t kUndecided = trace::kCallInterComm | trace::kCallPersistent;

  const TraceTables& tables_;
  const RingIndex& ring_;
  const TraceNames& names_;
  JobIntake& intake_;
  const TraceBytes bytes_;
  TraceProgram result_;
  TraceCounts counts_;
  TraceCompletions completions_;
  TraceDeviceCalls device_calls_;
  std::vector<Positions> positions_;  // by communicator id
  std::uint32_t number_ = 0;
  std::uint32_t launches_ = 0x4000'0000;  // NCCL's groups are numbered from 1
  std::uint64_t last_ticks_ = 0;
  bool warned_order_ = false;
};

}  // namespace

Operation opaque_call(Operation call, std::string_view native_name, JobIntake& intake) {
  call.kind = OpKind::kOpaque;
  call.extra = intake.shared_extra({}, native_name);
  return call;
}

Operation marker_of(Operation call, std::string_view label, JobIntake& intake) {
  call.kind = OpKind::kCompute;
  call.extra = intake.shared_extra(label, {});
  return call;
}

TraceProgram read_trace_program(const TraceTables& tables, const RingIndex& ring, const TraceNames& names, JobIntake& intake) {
  ProgramReader reader(tables, ring, names, intake);
  TraceProgram result = reader.read();
  if (reader.last_ticks() != 0) {
    const double at = TraceClock(tables, ring).unix_seconds(reader.last_ticks());
    if (at > 0) result.program.last_event = at;
  }
  return result;
}

}  // namespace lockstep
