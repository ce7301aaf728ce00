// Recording of point-to-point calls, of completion, and of what is only known by its name.
#pragma once

#include "mpi/recording.h"

namespace lockstep::shim::mpi::LOCKSTEP_BACKEND {

inline std::int32_t peer_of(int rank) noexcept {
  return rank == MPI_PROC_NULL ? trace::kProcNull : rank == MPI_ANY_SOURCE ? trace::kAnySource : rank;
}
inline std::uint32_t tag_of(int tag) noexcept {
  return tag == MPI_ANY_TAG ? trace::kAnyTagWord : static_cast<std::uint32_t>(tag);
}

inline std::uint32_t Recording::position(std::int32_t peer, bool sending) noexcept {
  if (peer == trace::kProcNull || call_.comm == nullptr) return trace::kNoPosition;
  return next_message(call_.comm->id, peer, sending, g_recorder.threads.load(std::memory_order_relaxed) == 1);
}

template <class Count>
void Recording::send(OpKind kind, Count count, MPI_Datatype datatype, int dest, int tag) noexcept {
  call_.kind = kind;
  call_.datatype = meaning_of(datatype);
  call_.count = units(call_.datatype, static_cast<std::uint64_t>(count));
  call_.peer = peer_of(dest);
  call_.aux = static_cast<std::uint32_t>(tag);
  call_.seq = position(call_.peer, true);
  call_.detail = request_id_;
  scope_.enter(call_);
}

// A wildcard is resolved from the status, also where the host does not want one: ours is passed instead.
inline void Recording::wildcards(int source, int tag, MPI_Status** status) noexcept {
  if (source == MPI_ANY_SOURCE) call_.flags |= trace::kCallAnySource;
  if (tag == MPI_ANY_TAG) call_.flags |= trace::kCallAnyTag;
  if (status == nullptr || (source != MPI_ANY_SOURCE && tag != MPI_ANY_TAG)) return;
  status_ = status;
  if (*status == MPI_STATUS_IGNORE) *status = &own_status_;
}

template <class Count>
void Recording::receive(OpKind kind, Count count, MPI_Datatype datatype, int source, int tag,
                        MPI_Status** status) noexcept {
  call_.kind = kind;
  call_.datatype = meaning_of(datatype);
  call_.count = units(call_.datatype, static_cast<std::uint64_t>(count));
  call_.peer = peer_of(source);
  call_.aux = tag_of(tag);
  call_.seq = position(call_.peer, false);
  call_.detail = request_id_;
  wildcards(source, tag, status);
  scope_.enter(call_);
}

template <class Count>
void Recording::send_receive(Count sendcount, MPI_Datatype sendtype, int dest, int sendtag, Count recvcount,
                             MPI_Datatype recvtype, int source, int recvtag, MPI_Status** status) noexcept {
  call_.kind = OpKind::kSend;
  call_.datatype = meaning_of(sendtype);
  call_.count = units(call_.datatype, static_cast<std::uint64_t>(sendcount));
  call_.peer = peer_of(dest);
  call_.aux = static_cast<std::uint32_t>(sendtag);
  call_.seq = position(call_.peer, true);
  call_.extensions = 1;
  scope_.reserve(1);
  const Meaning* meaning = meaning_of(recvtype);
  const std::uint8_t flags = call_.flags;
  call_.flags = 0;
  wildcards(source, recvtag, status);
  const std::uint8_t wild = call_.flags;
  call_.flags = flags;  // the wildcards are the receive half's
  half_ = scope_.extension<trace::SecondHalfRecord>(0, trace::RecordKind::kSecondHalf);
  if (half_ != nullptr) {
    half_->count = units(meaning, static_cast<std::uint64_t>(recvcount));
    half_->datatype = meaning != nullptr ? meaning->id : std::uint16_t{0};
    half_->peer = peer_of(source);
    half_->tag = tag_of(recvtag);
    half_->seq = position(half_->peer, false);
    half_->flags = wild;
  }
  scope_.enter(call_);
}

inline void Recording::probe(int source, int tag, MPI_Status** status) noexcept {
  call_.kind = OpKind::kProbe;
  call_.peer = peer_of(source);
  call_.aux = tag_of(tag);
  call_.seq = trace::kNoPosition;
  wildcards(source, tag, status);
  scope_.enter(call_);
}

inline void Recording::poll_probe(int source, int tag, const int* flag, MPI_Status** status) noexcept {
  call_.kind = OpKind::kIprobe;
  call_.is_poll = true;
  call_.peer = peer_of(source);
  call_.aux = tag_of(tag);
  call_.seq = trace::kNoPosition;
  call_.count = 1;
  call_.flags |= trace::kCallNonblocking;
  flag_ = flag;
  wildcards(source, tag, status);
  const std::uint64_t comm = call_.comm != nullptr ? call_.comm->id : 0;
  poll_key_ =
      trace::mix(comm << 32 | static_cast<std::uint32_t>(call_.peer), std::uint64_t{call_.aux} + 1) | 1;
  if (!scope_.fold_poll(OpKind::kIprobe, poll_key_)) scope_.enter(call_);
}

// The receive behind a matched probe names a message, not a source: what the probe found is looked up.
template <class Count>
void Recording::takes(OpKind kind, Count count, MPI_Datatype datatype, const MPI_Message* message) noexcept {
  call_.kind = kind;
  call_.datatype = meaning_of(datatype);
  call_.count = units(call_.datatype, static_cast<std::uint64_t>(count));
  call_.detail = request_id_;
  call_.seq = trace::kNoPosition;
  if (*message == g_constants.no_process_message) {
    call_.peer = trace::kProcNull;
  } else if (FoundMessage& found = found_message(to_word(*message));
             found.handle.load(std::memory_order_acquire) == to_word(*message)) {
    call_.comm = find_comm(found.comm);
    call_.peer = found.source;
    call_.aux = found.tag;
    call_.seq = position(call_.peer, false);
    found.handle.store(0, std::memory_order_relaxed);
  } else {
    call_.peer = trace::kAnySource;
    call_.aux = trace::kAnyTagWord;
    call_.flags |= trace::kCallAnySource | trace::kCallAnyTag | trace::kCallOpaqueArgs;
  }
  scope_.enter(call_);
}

inline void Recording::finish_receive(int result) noexcept {
  if (status_ == nullptr) return;
  if (result == MPI_SUCCESS && (flag_ == nullptr || *flag_ != 0)) {
    const std::int32_t source = peer_of((*status_)->MPI_SOURCE);
    const auto tag = static_cast<std::uint32_t>((*status_)->MPI_TAG);
    if (found_ != nullptr && call_.comm != nullptr) {
      FoundMessage& found = found_message(to_word(*found_));
      found.comm = call_.comm->handle.load(std::memory_order_relaxed);
      found.source = source;
      found.tag = tag;
      found.handle.store(to_word(*found_), std::memory_order_release);
    }
    if (half_ != nullptr) {
      half_->peer = source;
      half_->tag = tag;
    } else if (trace::CallRecord* record = scope_.record()) {
      std::atomic_ref(record->peer).store(source, std::memory_order_relaxed);
      scope_.set_aux(tag);
    }
  }
}

/// Most request ids that one call may list: 40 extension records of 12.
inline constexpr int kMaxListedRequests = 480;

inline void Recording::fill_requests(int count, const MPI_Request* requests) noexcept {
  call_.aux = static_cast<std::uint32_t>(count);
  const std::uint64_t null_request = to_word(g_constants.null_request);
  const auto id_of = [null_request](MPI_Request request) noexcept {
    const std::uint64_t handle = to_word(request);
    return handle == null_request ? 0 : request_id(handle);
  };
  if (count == 1) {
    call_.detail = id_of(requests[0]);
    poll_key_ = trace::mix(call_.detail, 1) | 1;
    return;
  }
  if (count <= 0 || requests == nullptr) return;
  int listed = count;
  if (listed > kMaxListedRequests) {
    listed = kMaxListedRequests;
    call_.flags |= trace::kCallTruncated;
  }
  call_.extensions = static_cast<std::uint8_t>((listed + 11) / 12);
  scope_.reserve(call_.extensions);
  poll_key_ = static_cast<std::uint64_t>(count);
  for (int first = 0; first < listed; first += 12) {
    auto* record = scope_.extension<trace::RequestsRecord>(static_cast<std::uint32_t>(first / 12),
                                                           trace::RecordKind::kRequests);
    if (record == nullptr) return;
    for (int i = first; i < listed && i < first + 12; ++i) {
      const std::uint32_t id = id_of(requests[i]);
      record->ids[i - first] = id;
      record->used = static_cast<std::uint8_t>(i - first + 1);
      poll_key_ = trace::mix(poll_key_ ^ id, static_cast<std::uint64_t>(i) + 1);
    }
  }
  poll_key_ |= 1;
}

inline void Recording::completes(OpKind kind, int count, const MPI_Request* requests) noexcept {
  call_.kind = kind;
  call_.count = 1;
  call_.seq = trace::kNoPosition;
  fill_requests(count, requests);
  scope_.enter(call_);
}

inline void Recording::polls(int count, const MPI_Request* requests, const int* flag) noexcept {
  call_.kind = OpKind::kTest;
  call_.is_poll = true;
  call_.count = 1;
  call_.seq = trace::kNoPosition;
  call_.flags |= trace::kCallNonblocking;
  flag_ = flag;
  fill_requests(count, requests);
  if (!scope_.fold_poll(OpKind::kTest, poll_key_)) scope_.enter(call_);
}

// Polls of opaque kinds (a window, a partition) come in loops too: the same function from the same place
// folds.
inline void Recording::opaque(const char* name) noexcept {
  call_.kind = OpKind::kOpaque;
  call_.is_poll = true;
  call_.count = 1;
  poll_key_ = reinterpret_cast<std::uint64_t>(name) | 1;
  if (scope_.fold_poll(OpKind::kOpaque, poll_key_)) return;
  call_.extensions = 1;
  scope_.reserve(1);
  if (auto* record = scope_.extension<trace::NameRecord>(0, trace::RecordKind::kName)) {
    std::strncpy(record->name, name, sizeof record->name - 1);
  }
  scope_.enter(call_);
}

inline void Recording::finish_poll(int result) noexcept {
  trace::CallRecord* record = scope_.record();
  if (record == nullptr || poll_key_ == 0) return;
  const bool polled = call_.is_poll;
  const bool found = flag_ == nullptr ? !polled : *flag_ != 0 && *flag_ != MPI_UNDEFINED;
  if (result == MPI_SUCCESS && found) {
    record->flags = static_cast<std::uint8_t>(record->flags | trace::kCallSucceeded);
    if (completed_index_ != nullptr && *completed_index_ != MPI_UNDEFINED) {
      record->seq = static_cast<std::uint32_t>(*completed_index_);
    }
    // A test of MPI_REQUEST_NULL always succeeds and says nothing; loops do it as well.
    const bool null_request = call_.kind == OpKind::kTest && call_.extensions == 0 && call_.detail == 0;
    if (polled && !null_request) scope_.drop_polls();
    if (!null_request) return;
  }
  if (polled) scope_.keep_poll(poll_key_);
}

}  // namespace lockstep::shim::mpi::LOCKSTEP_BACKEND
