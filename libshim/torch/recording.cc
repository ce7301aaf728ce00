// See the header.
#include "torch/recording.h"

#include <cstring>

#include "mpi/requests.h"
#include "text.h"
#include "torch/groups.h"
#include "torch/python_sites.h"
#include "torch/reducer.h"
#include "vector_registry.h"

namespace lockstep::shim::torch {
namespace {

constinit std::uint32_t g_named_epoch = 0;
constinit SpinLock g_lock;
constinit const char* g_version = nullptr;

void remember_open(CallScope& scope, const void* frame, Comm* comm, std::uint32_t request) noexcept {
  TorchThread& torch = t_torch;
  torch.open = scope.record();
  torch.open_frame = frame;
  torch.open_comm = comm;
  torch.open_commit = t_thread.commit;
  torch.open_request = request;
}

}  // namespace

void set_torch_version(const char* version) noexcept { std::atomic_ref(g_version).store(version, std::memory_order_release); }

void note_missing(const char* of, const char* what, const char* which) noexcept {
  char (&text)[sizeof g_recorder.problem] = g_recorder.problem;
  if (text[0] != '\0') return;  // one line is enough: what follows has the same cause, or changes nothing
  Text(text).add(of).add(" of torch are not all recorded: ").add(what).add(which);
  if (recorder_is_on()) write_text(trace::SideKind::kNote, 0, text);
}

void begin_file() noexcept {
  if (__builtin_expect(std::atomic_ref(g_named_epoch).load(std::memory_order_acquire) == g_recorder.epoch, 1)) return;
  const SpinGuard guard(g_lock);
  if (g_named_epoch == g_recorder.epoch) return;
  const ErrnoKeeper keep;
  if (g_recorder.epoch > 1) {
    reset_python_sites();
    reset_groups();
    reset_reducers();
    mpi::reset_requests();
  }
  load_tensor_functions();
  name_types();
  if (const char* version = std::atomic_ref(g_version).load(std::memory_order_acquire)) {
    char text[64];
    Text(text).add("torch ").add(version);
    write_text(trace::SideKind::kLibrary, static_cast<std::uint32_t>(trace::Library::kTorch), text);
  }
  std::atomic_ref(g_named_epoch).store(g_recorder.epoch, std::memory_order_release);
}

BackendCall::BackendCall(const void* frame, const void* caller, const void* backend) noexcept
    : site_(frame), scope_(frame, caller), frame_(frame), backend_(backend) {
  site_.restore();
}

void BackendCall::enter() noexcept {
  scope_.enter(call_);
  remember_open(scope_, frame_, is_collective(call_.kind) ? call_.comm : nullptr, request_);
}

// Every call of a backend is issued and waited for later.
void BackendCall::issue() noexcept {
  begin_file();
  call_.comm = comm_of_backend(backend_);
  request_ = mpi::g_next_request.fetch_add(1, std::memory_order_relaxed);
  call_.flags |= trace::kCallNonblocking;
  call_.aux = request_;
}

void BackendCall::agree(const Tensors& tensors) noexcept {
  const std::int64_t elements = elements_of(tensors);
  call_.datatype = tensors.size() != 0 ? type_of(*tensors.begin()) : nullptr;
  if (elements < 0 || (call_.datatype == nullptr && elements > 0)) call_.flags |= trace::kCallOpaqueArgs;
  call_.count = elements < 0 ? 0 : static_cast<std::uint64_t>(elements);
  call_.agreed_count = call_.count;
  call_.agreed_type = call_.datatype != nullptr && call_.count != 0 ? call_.datatype->hash : 0;
}

void BackendCall::use_root(Struct which, const void* options) noexcept {
  const std::int64_t root = root_in(which, options);
  if (root == kUnknownRoot) {
    call_.flags |= trace::kCallOpaqueArgs;
    return;
  }
  call_.peer = static_cast<std::int32_t>(root);
  call_.has_root = true;
}

void BackendCall::use_reduction(Struct which, const void* options) noexcept {
  call_.redop = reduction_of(reduction_in(which, options));
  if (call_.redop == nullptr) call_.flags |= trace::kCallOpaqueArgs;
}

void BackendCall::barrier() noexcept {
  issue();
  call_.kind = OpKind::kBarrier;
  enter();
}

void BackendCall::monitored_barrier() noexcept {
  begin_file();
  call_.comm = comm_of_backend(backend_);
  call_.kind = OpKind::kMonitoredBarrier;
  enter();
}

void BackendCall::collective(OpKind kind, const Tensors& tensors) noexcept {
  issue();
  call_.kind = kind;
  agree(tensors);
  enter();
}

void BackendCall::rooted(OpKind kind, const Tensors& tensors, Struct which, const void* options) noexcept {
  use_root(which, options);
  collective(kind, tensors);
}

void BackendCall::reduction(OpKind kind, const Tensors& tensors, Struct which, const void* options) noexcept {
  use_reduction(which, options);
  collective(kind, tensors);
}

void BackendCall::rooted_reduction(const Tensors& tensors, const void* options) noexcept {
  use_root(Struct::kReduce, options);
  reduction(OpKind::kReduce, tensors, Struct::kReduce, options);
}

template <class CountOf>
trace::CountsRecord BackendCall::counts(std::uint32_t members, std::uint8_t side, const Meaning* type,
                                        const CountOf& count_of) noexcept {
  trace::CountsRecord record;
  record.side = side;
  record.members = members;
  record.datatype = type != nullptr ? type->id : std::uint16_t{0};
  for (std::uint32_t i = 0; i < members; ++i) {
    const std::uint64_t count = count_of(i);
    record.hash = trace::mix(record.hash ^ count, std::uint64_t{i} + 1);
    record.total += count;
    if (i < 4) record.counts[i] = count;
  }
  if (members <= 4) return record;
  record.vector = find_vector(record.hash);
  if (record.vector != 0) return record;
  std::uint32_t id = 0;
  if (std::uint64_t* values = begin_vector(record.hash, members, id)) {
    for (std::uint32_t i = 0; i < members; ++i) values[i] = count_of(i);
    end_vector(values);
    record.vector = id;
  }
  return record;
}

void BackendCall::enter_counts(const trace::CountsRecord& sent, const trace::CountsRecord& received) noexcept {
  call_.kind = OpKind::kAllToAllV;
  call_.count = sent.total;
  call_.extensions = 2;
  scope_.reserve(2);
  const trace::CountsRecord* const sides[] = {&sent, &received};
  for (std::uint32_t i = 0; i < 2; ++i) {
    if (auto* record = scope_.extension<trace::CountsRecord>(i, trace::RecordKind::kCounts)) {
      *record = *sides[i];
      record->kind = static_cast<std::uint8_t>(trace::RecordKind::kCounts);
    }
  }
  enter();
}

// Splits are rows; without them every member gets the same.
void BackendCall::all_to_all(const Tensor& output, const Tensor& input, const Sizes& output_splits,
                             const Sizes& input_splits) noexcept {
  issue();
  const std::uint32_t members = call_.comm != nullptr && call_.comm->nranks > 0 ? static_cast<std::uint32_t>(call_.comm->nranks) : 0;
  call_.datatype = type_of(input);
  if (call_.datatype == nullptr) call_.datatype = type_of(output);
  const auto side_of = [&](const Tensor& tensor, const Sizes& splits, std::uint8_t side) noexcept {
    const std::int64_t elements = elements_of(tensor);
    std::int64_t rows = 0;
    for (const std::int64_t split : splits) rows += split;
    if (elements < 0 || (splits.size() != 0 && splits.size() != members)) call_.flags |= trace::kCallOpaqueArgs;
    return counts(members, side, call_.datatype, [&](std::uint32_t i) noexcept -> std::uint64_t {
      if (elements <= 0) return 0;
      if (splits.size() == 0) return static_cast<std::uint64_t>(elements) / members;
      if (i >= splits.size() || rows <= 0 || splits.first[i] < 0) return 0;
      return static_cast<std::uint64_t>(splits.first[i]) * (static_cast<std::uint64_t>(elements) / static_cast<std::uint64_t>(rows));
    });
  };
  const trace::CountsRecord sent = side_of(input, input_splits, 0);
  enter_counts(sent, side_of(output, output_splits, 1));
}

void BackendCall::all_to_all(const Tensors& outputs, const Tensors& inputs) noexcept {
  issue();
  call_.datatype = inputs.size() != 0 ? type_of(*inputs.begin()) : nullptr;
  const auto side_of = [&](const Tensors& tensors, std::uint8_t side) noexcept {
    return counts(static_cast<std::uint32_t>(tensors.size()), side, call_.datatype, [&](std::uint32_t i) noexcept {
      const std::int64_t elements = elements_of(tensors.first[i]);
      return elements < 0 ? std::uint64_t{0} : static_cast<std::uint64_t>(elements);
    });
  };
  const trace::CountsRecord sent = side_of(inputs, 0);
  enter_counts(sent, side_of(outputs, 1));
}

void BackendCall::message(OpKind kind, const Tensors& tensors, int peer, int tag) noexcept {
  issue();
  call_.kind = kind;
  agree(tensors);
  call_.peer = peer;
  call_.aux = static_cast<std::uint32_t>(tag);
  call_.detail = request_;
  const bool wildcard = peer == trace::kAnySource;
  if (wildcard) call_.flags |= trace::kCallAnySource;
  call_.seq = wildcard || call_.comm == nullptr
                  ? trace::kNoPosition
                  : mpi::next_message(call_.comm->id, peer, kind == OpKind::kIsend, false);
  enter();
}

void BackendCall::finish(const void* work) noexcept {
  if (!scope_.active()) {
    // Made by a call that is recorded: who waits for this Work waits for that call.
    const bool inside = t_torch.open_frame != nullptr && t_thread.frame == t_torch.open_frame && t_torch.open_request != 0;
    if (inside && work != nullptr) mpi::remember_request(reinterpret_cast<std::uint64_t>(work), t_torch.open_request);
    return;
  }
  t_torch.open_frame = nullptr;
  if (request_ != 0 && work != nullptr) mpi::remember_request(reinterpret_cast<std::uint64_t>(work), request_);
  if (request_ != 0 && t_torch.reducer != nullptr) add_reducer_request(t_torch.reducer, request_);
  scope_.finish(0);
}

WaitCall::WaitCall(const void* frame, const void* caller) noexcept
    : site_(frame), scope_(frame, caller), frame_(frame) {
  site_.restore();
}

void WaitCall::wait_for(const void* work) noexcept {
  const std::uint32_t request = mpi::request_id(reinterpret_cast<std::uint64_t>(work));
  wait_for(&request, 1);
}

void WaitCall::wait_for(const std::uint32_t* requests, std::uint32_t count) noexcept {
  if (!scope_.active()) return;
  constexpr std::uint32_t kEach = sizeof trace::RequestsRecord{}.ids / sizeof(std::uint32_t);
  Call call;
  call.kind = OpKind::kWait;
  call.count = 1;
  call.aux = count;
  call.seq = trace::kNoPosition;
  if (count == 1) {
    call.detail = requests[0];
  } else {
    const std::uint32_t named = count < kMostWaited ? count : kMostWaited;
    if (named != count) call.flags |= trace::kCallTruncated;
    call.extensions = static_cast<std::uint8_t>((named + kEach - 1) / kEach);
    scope_.reserve(call.extensions);
    for (std::uint32_t at = 0, i = 0; at < named; at += kEach, ++i) {
      auto* record = scope_.extension<trace::RequestsRecord>(i, trace::RecordKind::kRequests);
      if (record == nullptr) break;
      record->used = static_cast<std::uint8_t>(named - at < kEach ? named - at : kEach);
      std::memcpy(record->ids, requests + at, record->used * sizeof(std::uint32_t));
    }
  }
  scope_.enter(call);
  remember_open(scope_, frame_, nullptr, 0);
}

void WaitCall::finish() noexcept {
  if (!scope_.active()) return;
  t_torch.open_frame = nullptr;
  if (trace::CallRecord* record = scope_.record()) record->flags |= trace::kCallSucceeded;
  scope_.finish(0);
}

}  // namespace lockstep::shim::torch
