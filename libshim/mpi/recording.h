// What one row of functions.def says about its call, turned into records. One Recording lives in each
// wrapper; the compiler sees all of it, so that a call pays only for what its row mentions. Order in a row:
// on, starts, root or makes, then the call itself.
#pragma once

#include "call_scope.h"
#include "mpi/communicators.h"
#include "mpi/datatypes.h"
#include "mpi/native.h"
#include "mpi/requests.h"

namespace lockstep::shim::mpi::LOCKSTEP_BACKEND {

/// One side of a call that moves data both ways.
struct Part {
  template <class Count>
  Part(const void* buffer_given, Count count_given, MPI_Datatype type_given) noexcept
      : in_place(buffer_given == MPI_IN_PLACE),
        count(static_cast<std::uint64_t>(count_given)),
        type(type_given) {}
  bool in_place;
  std::uint64_t count;
  MPI_Datatype type;
};

class Recording {
 public:
  explicit Recording(CallScope& scope) noexcept : scope_(scope) {}

  Recording& on(MPI_Comm comm) noexcept {
    call_.comm = find_comm(to_word(comm));
    if (call_.comm != nullptr && (call_.comm->flags & trace::kCommInter) != 0)
      call_.flags |= trace::kCallInterComm;
    return *this;
  }
  Recording& starts(MPI_Request* request) noexcept {
    request_ = request;
    request_id_ = g_next_request.fetch_add(1, std::memory_order_relaxed);
    call_.flags |= trace::kCallNonblocking;
    return *this;
  }
  Recording& root(int rank) noexcept {
    root_ = rank;
    call_.has_root = true;
    call_.peer = rank == MPI_PROC_NULL ? trace::kProcNull : rank == MPI_ROOT ? trace::kRootHere : rank;
    return *this;
  }
  Recording& makes(OpKind kind, MPI_Comm* made) noexcept {
    call_.kind = kind;
    made_ = made;
    return *this;
  }
  Recording& index(const int* completed) noexcept {
    completed_index_ = completed;
    return *this;
  }
  Recording& finds(MPI_Message* message, MPI_Status** status) noexcept {
    found_ = message;
    status_ = status;
    if (*status == MPI_STATUS_IGNORE) *status = &own_status_;
    return *this;
  }

  // collectives.h
  void barrier() noexcept;
  template <class Count>
  void broadcast(Count count, MPI_Datatype datatype) noexcept;
  template <class Count>
  void reduce(OpKind kind, Count count, MPI_Datatype datatype, MPI_Op op) noexcept;
  template <class Count>
  void reduce_scatter_v(const Count* counts, MPI_Datatype datatype, MPI_Op op) noexcept;
  void gather(const Part& sent, const Part& received) noexcept;
  void scatter(const Part& sent, const Part& received) noexcept;
  void both_ways(OpKind kind, const Part& sent, const Part& received) noexcept;
  template <class Count>
  void gather_v(const Part& sent, const Count* counts, MPI_Datatype datatype) noexcept;
  template <class Count>
  void scatter_v(const Count* counts, MPI_Datatype datatype, const Part& received) noexcept;
  template <class Count>
  void all_gather_v(const Part& sent, const Count* counts, MPI_Datatype datatype) noexcept;
  template <class Count>
  void all_to_all_v(const void* sendbuf, const Count* sendcounts, MPI_Datatype sendtype,
                    const Count* recvcounts, MPI_Datatype recvtype) noexcept;
  template <class Count>
  void all_to_all_w(const void* sendbuf, const Count* sendcounts, const MPI_Datatype* sendtypes,
                    const Count* recvcounts, const MPI_Datatype* recvtypes) noexcept;

  // messages.h
  template <class Count>
  void send(OpKind kind, Count count, MPI_Datatype datatype, int dest, int tag) noexcept;
  template <class Count>
  void receive(OpKind kind, Count count, MPI_Datatype datatype, int source, int tag,
               MPI_Status** status) noexcept;
  template <class Count>
  void send_receive(Count sendcount, MPI_Datatype sendtype, int dest, int sendtag, Count recvcount,
                    MPI_Datatype recvtype, int source, int recvtag, MPI_Status** status) noexcept;
  void probe(int source, int tag, MPI_Status** status) noexcept;
  void poll_probe(int source, int tag, const int* flag, MPI_Status** status) noexcept;
  template <class Count>
  void takes(OpKind kind, Count count, MPI_Datatype datatype, const MPI_Message* message) noexcept;
  void completes(OpKind kind, int count, const MPI_Request* requests) noexcept;
  void polls(int count, const MPI_Request* requests, const int* flag) noexcept;
  void opaque(const char* name) noexcept;

  // lifetimes.h
  void init() noexcept;
  void finalize() noexcept;
  void abort(MPI_Comm comm, int code) noexcept;
  void same_members() noexcept;
  void any_members() noexcept;
  void split(int color, int key) noexcept;
  void of(MPI_Group group, int tag) noexcept;
  void frees(OpKind kind, const MPI_Comm* comm) noexcept;
  void names(MPI_Comm comm, const char* name) noexcept;
  void learns(MPI_Datatype* datatype) noexcept;
  void learns_op(MPI_Op* op) noexcept;
  void forgets(const MPI_Datatype* datatype) noexcept;
  void forgets_op(const MPI_Op* op) noexcept;

  /// The library's call came back with `result`.
  void finish(int result) noexcept;

 private:
  /// With a count of 0 any handle will do, also one that is none.
  const Meaning* meaning_of(MPI_Datatype datatype, bool matters = true) noexcept {
    const Meaning* meaning = g_datatypes.find(to_word(datatype));
    if (__builtin_expect(meaning == nullptr && matters, 0)) call_.flags |= trace::kCallOpaqueArgs;
    return meaning;
  }
  static std::uint64_t units(const Meaning* meaning, std::uint64_t count) noexcept {
    return meaning != nullptr ? meaning->units * count : count;
  }
  /// Count and type of the call, and that all members must have the same.
  void agree(MPI_Datatype datatype, std::uint64_t count) noexcept {
    call_.datatype = meaning_of(datatype, count != 0);
    call_.count = units(call_.datatype, count);
    call_.agreed_count = call_.count;
    // Nothing of any type is the same nothing.
    call_.agreed_type = call_.datatype != nullptr && call_.count != 0 ? call_.datatype->hash : 0;
  }
  void use(MPI_Op op) noexcept {
    call_.redop = g_redops.find(to_word(op));
    if (__builtin_expect(call_.redop == nullptr, 0)) call_.flags |= trace::kCallOpaqueArgs;
  }
  bool is_inter() const noexcept { return (call_.flags & trace::kCallInterComm) != 0; }
  bool i_am_root() const noexcept {
    return is_inter() ? root_ == MPI_ROOT : call_.comm != nullptr && root_ == call_.comm->rank;
  }
  /// Members that a count vector has an entry for; 0 = not known.
  std::int32_t vector_length() const noexcept {
    return call_.comm == nullptr || is_inter() ? 0 : call_.comm->nranks;
  }
  void enter_collective() noexcept;
  void second_half(const Part& other, bool root_agrees) noexcept;
  template <class Count, class Type>
  trace::CountsRecord count_vector(const Count* counts, const Type& types, std::uint8_t side) noexcept;
  void enter_with(const trace::CountsRecord* first, const trace::CountsRecord* second) noexcept;
  void wildcards(int source, int tag, MPI_Status** status) noexcept;
  std::uint32_t position(std::int32_t peer, bool sending) noexcept;
  void fill_requests(int count, const MPI_Request* requests) noexcept;
  void finish_receive(int result) noexcept;
  void finish_poll(int result) noexcept;
  void finish_made(int result) noexcept;

  CallScope& scope_;
  Call call_;
  MPI_Request* request_ = nullptr;
  std::uint32_t request_id_ = 0;
  int root_ = 0;
  MPI_Comm* made_ = nullptr;
  bool made_same_ = false;
  const int* completed_index_ = nullptr;
  const int* flag_ = nullptr;
  MPI_Message* found_ = nullptr;
  std::uint64_t poll_key_ = 0;
  MPI_Status** status_ = nullptr;
  MPI_Status own_status_;
  trace::SecondHalfRecord* half_ = nullptr;
  enum class After : std::uint8_t { kNothing, kInit, kFinalize, kDatatype, kRedop } after_ = After::kNothing;
  bool silent_ = false;  ///< no record was entered
  MPI_Datatype* datatype_ = nullptr;
  MPI_Op* redop_ = nullptr;
};

}  // namespace lockstep::shim::mpi::LOCKSTEP_BACKEND
