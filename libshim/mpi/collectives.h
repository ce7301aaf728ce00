// Recording of collectives: which counts and types must agree among the members (MPI 3.1, chapter 5;
// FORMAT.md, section 4).
#pragma once

#include "mpi/recording.h"
#include "vector_registry.h"

namespace lockstep::shim::mpi::LOCKSTEP_BACKEND {

inline void Recording::enter_collective() noexcept {
  if (is_inter()) {
    // Two groups with different parts: nothing is compared but that the call was made.
    call_.agreed_count = 0;
    call_.agreed_type = 0;
    call_.has_root = false;
  }
  if (request_ != nullptr) call_.aux = request_id_;
  scope_.enter(call_);
}

inline void Recording::barrier() noexcept {
  call_.kind = OpKind::kBarrier;
  enter_collective();
}

template <class Count>
void Recording::broadcast(Count count, MPI_Datatype datatype) noexcept {
  call_.kind = OpKind::kBroadcast;
  agree(datatype, static_cast<std::uint64_t>(count));
  enter_collective();
}

template <class Count>
void Recording::reduce(OpKind kind, Count count, MPI_Datatype datatype, MPI_Op op) noexcept {
  call_.kind = kind;
  agree(datatype, static_cast<std::uint64_t>(count));
  use(op);
  enter_collective();
}

/// Hash, sum and first values of `counts` in units of their types. `types` is a Meaning pointer, or an array
/// of datatypes.
template <class Count, class Type>
trace::CountsRecord Recording::count_vector(const Count* counts, const Type& types,
                                            std::uint8_t side) noexcept {
  trace::CountsRecord record;
  record.side = side;
  record.members = static_cast<std::uint32_t>(vector_length());
  for (std::uint32_t i = 0; i < record.members; ++i) {
    const Meaning* meaning = nullptr;
    if constexpr (std::is_same_v<Type, const Meaning*>) {
      meaning = types;
    } else {
      meaning = counts[i] != 0 ? meaning_of(types[i]) : nullptr;
    }
    const std::uint64_t count = units(meaning, static_cast<std::uint64_t>(counts[i]));
    record.hash = trace::mix(record.hash ^ count, std::uint64_t{i} + 1);
    record.total += count;
    if (i < 4) record.counts[i] = count;
  }
  if constexpr (std::is_same_v<Type, const Meaning*>)
    record.datatype = types != nullptr ? types->id : std::uint16_t{0};
  if (record.members > 4) {
    record.vector = find_vector(record.hash);
    if (record.vector == 0) {
      std::uint32_t id = 0;
      if (std::uint64_t* values = begin_vector(record.hash, record.members, id)) {
        for (std::uint32_t i = 0; i < record.members; ++i) {
          const Meaning* meaning = nullptr;
          if constexpr (std::is_same_v<Type, const Meaning*>) {
            meaning = types;
          } else {
            meaning = g_datatypes.find(to_word(types[i]));
          }
          values[i] = units(meaning, static_cast<std::uint64_t>(counts[i]));
        }
        end_vector(values);
        record.vector = id;
      }
    }
  }
  return record;
}

inline void Recording::enter_with(const trace::CountsRecord* first,
                                  const trace::CountsRecord* second) noexcept {
  call_.extensions = static_cast<std::uint8_t>((first != nullptr ? 1 : 0) + (second != nullptr ? 1 : 0));
  scope_.reserve(call_.extensions);
  std::uint32_t at = 0;
  for (const trace::CountsRecord* counts : {first, second}) {
    if (counts == nullptr) continue;
    auto* record = scope_.extension<trace::CountsRecord>(at++, trace::RecordKind::kCounts);
    if (record == nullptr) continue;
    *record = *counts;
    record->kind = static_cast<std::uint8_t>(trace::RecordKind::kCounts);
    record->commit = 0;
  }
  enter_collective();
}

template <class Count>
void Recording::reduce_scatter_v(const Count* counts, MPI_Datatype datatype, MPI_Op op) noexcept {
  call_.kind = OpKind::kReduceScatterV;
  call_.datatype = meaning_of(datatype);
  use(op);
  const trace::CountsRecord vector = count_vector(counts, call_.datatype, 1);
  call_.count = vector.total;
  call_.agreed_count = vector.hash;
  call_.agreed_type = call_.datatype != nullptr && vector.total != 0 ? call_.datatype->hash : 0;
  enter_with(&vector, nullptr);
}

// `other` is the side that the call record does not hold; it matters where it says something else.
inline void Recording::second_half(const Part& other, bool agreed) noexcept {
  if (other.in_place) {
    enter_collective();
    return;
  }
  const Meaning* meaning = meaning_of(other.type);
  const std::uint64_t count = units(meaning, other.count);
  const std::uint64_t hash = meaning != nullptr && count != 0 ? meaning->hash : 0;
  const std::uint64_t own = call_.datatype != nullptr && call_.count != 0 ? call_.datatype->hash : 0;
  if (count == call_.count && hash == own) {
    enter_collective();
    return;
  }
  if (agreed) call_.agreed_type = trace::mix(call_.agreed_type, trace::mix(count, hash));
  call_.extensions = 1;
  scope_.reserve(1);
  if (auto* half = scope_.extension<trace::SecondHalfRecord>(0, trace::RecordKind::kSecondHalf)) {
    half->count = count;
    half->datatype = meaning != nullptr ? meaning->id : std::uint16_t{0};
  }
  enter_collective();
}

inline void Recording::both_ways(OpKind kind, const Part& sent, const Part& received) noexcept {
  call_.kind = kind;
  agree(received.type, received.count);
  second_half(sent, true);
}

inline void Recording::gather(const Part& sent, const Part& received) noexcept {
  call_.kind = OpKind::kGather;
  const bool root = i_am_root();
  const Part& own = root ? received : sent;
  agree(own.type, own.count);
  if (root) {
    second_half(sent, false);
  } else {
    enter_collective();
  }
}

inline void Recording::scatter(const Part& sent, const Part& received) noexcept {
  call_.kind = OpKind::kScatter;
  const bool root = i_am_root();
  const Part& own = root ? sent : received;
  agree(own.type, own.count);
  if (root) {
    second_half(received, false);
  } else {
    enter_collective();
  }
}

template <class Count>
void Recording::gather_v(const Part& sent, const Count* counts, MPI_Datatype datatype) noexcept {
  call_.kind = OpKind::kGatherV;
  if (!sent.in_place) {
    call_.datatype = meaning_of(sent.type);
    call_.count = units(call_.datatype, sent.count);
  }
  if (!i_am_root()) {
    enter_collective();
    return;
  }
  const Meaning* meaning = meaning_of(datatype);
  const trace::CountsRecord vector = count_vector(counts, meaning, 1);
  enter_with(&vector, nullptr);
}

template <class Count>
void Recording::scatter_v(const Count* counts, MPI_Datatype datatype, const Part& received) noexcept {
  call_.kind = OpKind::kScatterV;
  if (!received.in_place) {
    call_.datatype = meaning_of(received.type);
    call_.count = units(call_.datatype, received.count);
  }
  if (!i_am_root()) {
    enter_collective();
    return;
  }
  const Meaning* meaning = meaning_of(datatype);
  const trace::CountsRecord vector = count_vector(counts, meaning, 0);
  enter_with(&vector, nullptr);
}

template <class Count>
void Recording::all_gather_v(const Part& sent, const Count* counts, MPI_Datatype datatype) noexcept {
  call_.kind = OpKind::kAllGatherV;
  const Meaning* meaning = meaning_of(datatype);
  const trace::CountsRecord vector = count_vector(counts, meaning, 1);
  call_.datatype = meaning;
  if (sent.in_place) {
    const bool known = call_.comm != nullptr && vector.members > 0;
    call_.count = known ? units(meaning, static_cast<std::uint64_t>(counts[call_.comm->rank])) : 0;
  } else {
    call_.datatype = meaning_of(sent.type);
    call_.count = units(call_.datatype, sent.count);
  }
  call_.agreed_count = vector.hash;
  call_.agreed_type = meaning != nullptr && vector.total != 0 ? meaning->hash : 0;
  enter_with(&vector, nullptr);
}

template <class Count>
void Recording::all_to_all_v(const void* sendbuf, const Count* sendcounts, MPI_Datatype sendtype,
                             const Count* recvcounts, MPI_Datatype recvtype) noexcept {
  call_.kind = OpKind::kAllToAllV;
  const Meaning* receive_meaning = meaning_of(recvtype);
  const trace::CountsRecord received = count_vector(recvcounts, receive_meaning, 1);
  call_.datatype = receive_meaning;
  call_.count = received.total;
  if (sendbuf == MPI_IN_PLACE) {
    enter_with(nullptr, &received);
    return;
  }
  const Meaning* send_meaning = meaning_of(sendtype);
  const trace::CountsRecord sent = count_vector(sendcounts, send_meaning, 0);
  enter_with(&sent, &received);
}

template <class Count>
void Recording::all_to_all_w(const void* sendbuf, const Count* sendcounts, const MPI_Datatype* sendtypes,
                             const Count* recvcounts, const MPI_Datatype* recvtypes) noexcept {
  call_.kind = OpKind::kAllToAllW;
  const trace::CountsRecord received = count_vector(recvcounts, recvtypes, 1);
  call_.count = received.total;
  if (sendbuf == MPI_IN_PLACE) {
    enter_with(nullptr, &received);
    return;
  }
  const trace::CountsRecord sent = count_vector(sendcounts, sendtypes, 0);
  enter_with(&sent, &received);
}

}  // namespace lockstep::shim::mpi::LOCKSTEP_BACKEND
