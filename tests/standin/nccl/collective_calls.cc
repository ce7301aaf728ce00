// Collectives and messages as they are called: arguments are checked as the real library does, then the call is issued.
#include "nccl/calls.h"
#include "nccl/config.h"
#include "nccl/group.h"
#include "nccl/reduce.h"

namespace lockstep::standin::offered {
namespace {

ncclResult_t invalid(const char* what, ncclComm_t comm) { return fail(ncclInvalidArgument, what, comm); }

/// Checks and issues.
ncclResult_t call_checked(Call call) {
  ncclComm* comm = call.comm;
  if (const ncclResult_t result = check_communicator(comm); result != ncclSuccess) return refuse(result);
  if (datatype_bytes(call.datatype) == 0) return refuse(invalid("no such datatype", comm));
  if ((has_root(call.kind) || call.is_message()) && (call.peer < 0 || call.peer >= comm->ranks))
    return refuse(invalid(call.is_message() ? "no such peer" : "no such root", comm));
  if (has_reduction(call.kind) && call.redop >= kFirstUserRedop) {
    const auto index = static_cast<std::size_t>(call.redop - kFirstUserRedop);
    if (index >= comm->scalars.size() || comm->scalar_types[index] < 0) return refuse(invalid("no such reduction", comm));
    if (comm->scalar_types[index] != call.datatype) return refuse(invalid("the reduction was made for another datatype", comm));
    call.scalar = comm->scalars[index];
  }
  if (has_reduction(call.kind) && call.redop < 0) return refuse(invalid("no such reduction", comm));
  if (call.count == 0 && !call.is_message()) return ncclSuccess;
  return refuse(issue_call(std::move(call)));
}

Call make_call(OpKind kind, const void* send, void* receive, size_t count, int type, ncclComm_t comm, cudaStream_t stream) {
  Call call;
  call.kind = kind;
  call.send = send;
  call.receive = receive;
  call.count = count;
  call.datatype = type;
  call.comm = comm;
  call.stream = stream;
  return call;
}

}  // namespace

ncclResult_t AllReduce(const void* send, void* receive, size_t count, ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
                       cudaStream_t stream) {
  Call call = make_call(OpKind::kAllReduce, send, receive, count, type, comm, stream);
  call.redop = op;
  return call_checked(std::move(call));
}

ncclResult_t Reduce(const void* send, void* receive, size_t count, ncclDataType_t type, ncclRedOp_t op, int root,
                    ncclComm_t comm, cudaStream_t stream) {
  Call call = make_call(OpKind::kReduce, send, receive, count, type, comm, stream);
  call.redop = op;
  call.peer = root;
  return call_checked(std::move(call));
}

ncclResult_t ReduceScatter(const void* send, void* receive, size_t count, ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
                           cudaStream_t stream) {
  Call call = make_call(OpKind::kReduceScatter, send, receive, count, type, comm, stream);
  call.redop = op;
  return call_checked(std::move(call));
}

ncclResult_t Broadcast(const void* send, void* receive, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                       cudaStream_t stream) {
  Call call = make_call(OpKind::kBroadcast, send, receive, count, type, comm, stream);
  call.peer = root;
  return call_checked(std::move(call));
}

ncclResult_t AllGather(const void* send, void* receive, size_t count, ncclDataType_t type, ncclComm_t comm, cudaStream_t stream) {
  return call_checked(make_call(OpKind::kAllGather, send, receive, count, type, comm, stream));
}

ncclResult_t AlltoAll(const void* send, void* receive, size_t count, ncclDataType_t type, ncclComm_t comm, cudaStream_t stream) {
  return call_checked(make_call(OpKind::kAllToAll, send, receive, count, type, comm, stream));
}

ncclResult_t Gather(const void* send, void* receive, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                    cudaStream_t stream) {
  Call call = make_call(OpKind::kGather, send, receive, count, type, comm, stream);
  call.peer = root;
  return call_checked(std::move(call));
}

ncclResult_t Scatter(const void* send, void* receive, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                     cudaStream_t stream) {
  Call call = make_call(OpKind::kScatter, send, receive, count, type, comm, stream);
  call.peer = root;
  return call_checked(std::move(call));
}

// A config says how, not what.
ncclResult_t AllReduceConfig(const void* send, void* receive, size_t count, ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
                             cudaStream_t stream, const ncclCollConfig_t*) {
  return AllReduce(send, receive, count, type, op, comm, stream);
}
ncclResult_t ReduceConfig(const void* send, void* receive, size_t count, ncclDataType_t type, ncclRedOp_t op, int root,
                          ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t*) {
  return Reduce(send, receive, count, type, op, root, comm, stream);
}
ncclResult_t ReduceScatterConfig(const void* send, void* receive, size_t count, ncclDataType_t type, ncclRedOp_t op,
                                 ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t*) {
  return ReduceScatter(send, receive, count, type, op, comm, stream);
}
ncclResult_t BroadcastConfig(const void* send, void* receive, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                             cudaStream_t stream, const ncclCollConfig_t*) {
  return Broadcast(send, receive, count, type, root, comm, stream);
}
ncclResult_t AllGatherConfig(const void* send, void* receive, size_t count, ncclDataType_t type, ncclComm_t comm,
                             cudaStream_t stream, const ncclCollConfig_t*) {
  return AllGather(send, receive, count, type, comm, stream);
}
ncclResult_t AlltoAllConfig(const void* send, void* receive, size_t count, ncclDataType_t type, ncclComm_t comm,
                            cudaStream_t stream, const ncclCollConfig_t*) {
  return AlltoAll(send, receive, count, type, comm, stream);
}
ncclResult_t GatherConfig(const void* send, void* receive, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                          cudaStream_t stream, const ncclCollConfig_t*) {
  return Gather(send, receive, count, type, root, comm, stream);
}
ncclResult_t ScatterConfig(const void* send, void* receive, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                           cudaStream_t stream, const ncclCollConfig_t*) {
  return Scatter(send, receive, count, type, root, comm, stream);
}

ncclResult_t Send(const void* buffer, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream) {
  Call call = make_call(OpKind::kSend, buffer, nullptr, count, type, comm, stream);
  call.peer = peer;
  return call_checked(std::move(call));
}

ncclResult_t Recv(void* buffer, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream) {
  Call call = make_call(OpKind::kRecv, nullptr, buffer, count, type, comm, stream);
  call.peer = peer;
  return call_checked(std::move(call));
}

ncclResult_t GroupStart() {
  begin_group();
  return ncclSuccess;
}

ncclResult_t GroupEnd() { return end_group(true); }

ncclResult_t GroupSimulateEnd(ncclSimInfo_t* info) {
  if (info != nullptr && info->magic != kSimInfoMagic) {
    end_group(false);
    return fail(ncclInvalidArgument, "the simulation info is not initialised");
  }
  if (info != nullptr) info->estimatedTime = 0.0F;
  return end_group(false);
}

}  // namespace lockstep::standin::offered
