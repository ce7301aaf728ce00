// The tables of names; one row per spelling.
#include "read/native_names.h"

#include <string>
#include <unordered_map>

namespace lockstep {
namespace {

struct KindRow {
  std::string_view name;
  OpKind kind;
};

// torch.distributed (2.x), its C++ names and those of older releases; DeepSpeed's and Horovod's of the same calls.
constexpr KindRow kFrameworkNames[] = {
    {"allreduce", OpKind::kAllReduce},
    {"all_reduce_coalesced", OpKind::kAllReduce},
    {"allreduce_coalesced", OpKind::kAllReduce},
    {"_allreduce_base", OpKind::kAllReduce},
    {"inference_all_reduce", OpKind::kAllReduce},
    {"bcast", OpKind::kBroadcast},
    {"broadcast_object_list", OpKind::kBroadcast},
    {"broadcast_coalesced", OpKind::kBroadcast},
    {"_broadcast_oop", OpKind::kBroadcast},
    {"_reduce_oop", OpKind::kReduce},
    {"allgather", OpKind::kAllGather},
    {"all_gather_into_tensor", OpKind::kAllGather},
    {"all_gather_into_tensor_coalesced", OpKind::kAllGather},
    {"all_gather_base", OpKind::kAllGather},
    {"_all_gather_base", OpKind::kAllGather},
    {"_allgather_base", OpKind::kAllGather},
    {"allgather_fn", OpKind::kAllGather},
    {"all_gather_coalesced", OpKind::kAllGather},
    {"allgather_coalesced", OpKind::kAllGather},
    {"allgather_into_tensor_coalesced", OpKind::kAllGather},
    {"all_gather_object", OpKind::kAllGather},
    {"gather_object", OpKind::kGather},
    {"scatter_object_list", OpKind::kScatter},
    {"reducescatter", OpKind::kReduceScatter},
    {"reduce_scatter_tensor", OpKind::kReduceScatter},
    {"reduce_scatter_tensor_coalesced", OpKind::kReduceScatter},
    {"reduce_scatter_base", OpKind::kReduceScatter},
    {"_reduce_scatter_base", OpKind::kReduceScatter},
    {"reduce_scatter_fn", OpKind::kReduceScatter},
    {"alltoall", OpKind::kAllToAll},
    {"all_to_all_single", OpKind::kAllToAll},
    {"all_to_allv", OpKind::kAllToAllV},
    {"alltoall_base", OpKind::kAllToAll},
    {"allgatherv", OpKind::kAllGatherV},
    {"alltoallv", OpKind::kAllToAllV},
    {"alltoallw", OpKind::kAllToAllW},
    {"gatherv", OpKind::kGatherV},
    {"scatterv", OpKind::kScatterV},
    {"init_process_group", OpKind::kInit},
    {"destroy_process_group", OpKind::kDestroy},
    {"send_object_list", OpKind::kSend},
    {"recv_object_list", OpKind::kRecv},
    {"recvAnysource", OpKind::kRecv},
    {"recv_anysource", OpKind::kRecv},
    {"receive", OpKind::kRecv},
    {"waitall", OpKind::kWait},
    {"wait_all", OpKind::kWait},
    {"stream_synchronize", OpKind::kStreamSync},
    {"device_synchronize", OpKind::kDeviceSync},
    {"synchronize", OpKind::kDeviceSync},
    {"event_synchronize", OpKind::kEventSync},
    {"stream_wait_event", OpKind::kStreamWait},
    {"wait_event", OpKind::kStreamWait},
    {"record_event", OpKind::kEventRecord},
    {"cuda_synchronize", OpKind::kDeviceSync},
    {"torch.cuda.synchronize", OpKind::kDeviceSync},
    {"cuda.synchronize", OpKind::kDeviceSync},
    {"memcpy", OpKind::kStreamSync},
    {"barrier_all", OpKind::kBarrier},
    {"comm_dup", OpKind::kDup},
    {"comm_split", OpKind::kSplit},
    {"comm_create", OpKind::kCreate},
    {"comm_init_rank", OpKind::kInit},
    {"sleep", OpKind::kCompute},
    {"return", OpKind::kExit},
    {"groupstart", OpKind::kGroupStart},
    {"groupend", OpKind::kGroupEnd},
};

// nccl.h 2.30; RCCL and MSCCL use the same names.
constexpr KindRow kNcclNames[] = {
    {"ncclAllReduce", OpKind::kAllReduce},
    {"ncclBroadcast", OpKind::kBroadcast},
    {"ncclBcast", OpKind::kBroadcast},
    {"ncclReduce", OpKind::kReduce},
    {"ncclAllGather", OpKind::kAllGather},
    {"ncclReduceScatter", OpKind::kReduceScatter},
    {"ncclAlltoAll", OpKind::kAllToAll},
    {"ncclAllToAll", OpKind::kAllToAll},
    {"ncclAllToAllv", OpKind::kAllToAllV},
    {"ncclGather", OpKind::kGather},
    {"ncclScatter", OpKind::kScatter},
    {"ncclSend", OpKind::kSend},
    {"ncclRecv", OpKind::kRecv},
    {"ncclCommInitRank", OpKind::kInit},
    {"ncclCommInitRankConfig", OpKind::kInit},
    {"ncclCommInitRankScalable", OpKind::kInit},
    {"ncclCommInitAll", OpKind::kInit},
    {"ncclCommSplit", OpKind::kSplit},
    {"ncclCommShrink", OpKind::kShrink},
    {"ncclCommGrow", OpKind::kGrow},
    {"ncclCommFinalize", OpKind::kFinalize},
    {"ncclCommDestroy", OpKind::kDestroy},
    {"ncclCommAbort", OpKind::kAbort},
    {"ncclCommRevoke", OpKind::kRevoke},
    {"ncclCommWindowRegister", OpKind::kWindowRegister},
    {"ncclGroupStart", OpKind::kGroupStart},
    {"ncclGroupEnd", OpKind::kGroupEnd},
    {"ncclGroupSimulateEnd", OpKind::kGroupEnd},
    {"ncclPutSignal", OpKind::kPutSignal},
    {"ncclSignal", OpKind::kSignal},
    {"ncclWaitSignal", OpKind::kWaitSignal},
};

// The CUDA runtime and driver; HIP has the runtime's names with its own prefix. A synchronous copy waits for its stream.
constexpr KindRow kDeviceNames[] = {
    {"StreamSynchronize", OpKind::kStreamSync},
    {"DeviceSynchronize", OpKind::kDeviceSync},
    {"CtxSynchronize", OpKind::kDeviceSync},
    {"EventRecord", OpKind::kEventRecord},
    {"EventRecordWithFlags", OpKind::kEventRecord},
    {"EventSynchronize", OpKind::kEventSync},
    {"StreamWaitEvent", OpKind::kStreamWait},
    {"GraphLaunch", OpKind::kGraphLaunch},
    {"Memcpy", OpKind::kStreamSync},
};

// The MPI standard 4.1 without its prefix, in lower case; "i" + name and name + "_init" are made from those below.
constexpr KindRow kMpiNames[] = {
    {"allreduce", OpKind::kAllReduce},
    {"bcast", OpKind::kBroadcast},
    {"reduce", OpKind::kReduce},
    {"allgather", OpKind::kAllGather},
    {"allgatherv", OpKind::kAllGatherV},
    {"reduce_scatter", OpKind::kReduceScatterV},
    {"reduce_scatter_block", OpKind::kReduceScatter},
    {"alltoall", OpKind::kAllToAll},
    {"alltoallv", OpKind::kAllToAllV},
    {"alltoallw", OpKind::kAllToAllW},
    {"gather", OpKind::kGather},
    {"gatherv", OpKind::kGatherV},
    {"scatter", OpKind::kScatter},
    {"scatterv", OpKind::kScatterV},
    {"scan", OpKind::kScan},
    {"exscan", OpKind::kExscan},
    {"barrier", OpKind::kBarrier},
    {"comm_dup", OpKind::kDup},
};
constexpr KindRow kMpiPlainNames[] = {
    {"init", OpKind::kInit},
    {"init_thread", OpKind::kInit},
    {"finalize", OpKind::kFinalize},
    {"comm_split", OpKind::kSplit},
    {"comm_split_type", OpKind::kSplitType},
    {"comm_create", OpKind::kCreate},
    {"comm_create_group", OpKind::kCreateGroup},
    {"intercomm_create", OpKind::kIntercommCreate},
    {"intercomm_merge", OpKind::kIntercommMerge},
    {"cart_create", OpKind::kCartCreate},
    {"cart_sub", OpKind::kCartSub},
    {"graph_create", OpKind::kGraphCreate},
    {"dist_graph_create", OpKind::kDistGraphCreate},
    {"dist_graph_create_adjacent", OpKind::kDistGraphCreate},
    {"comm_free", OpKind::kFree},
    {"comm_disconnect", OpKind::kDisconnect},
    {"abort", OpKind::kAbort},
    {"send", OpKind::kSend},
    {"recv", OpKind::kRecv},
    {"isend", OpKind::kIsend},
    {"irecv", OpKind::kIrecv},
    {"ssend", OpKind::kSsend},
    {"bsend", OpKind::kBsend},
    {"rsend", OpKind::kRsend},
    {"issend", OpKind::kIssend},
    {"ibsend", OpKind::kIbsend},
    {"irsend", OpKind::kIrsend},
    {"wait", OpKind::kWait},
    {"waitall", OpKind::kWait},
    {"waitany", OpKind::kWaitAny},
    {"waitsome", OpKind::kWaitSome},
    {"test", OpKind::kTest},
    {"testall", OpKind::kTest},
    {"testany", OpKind::kTest},
    {"testsome", OpKind::kTest},
    {"probe", OpKind::kProbe},
    {"mprobe", OpKind::kProbe},
    {"iprobe", OpKind::kIprobe},
    {"improbe", OpKind::kIprobe},
};

struct TextRow {
  std::string_view name;
  std::string_view ours;
};

// In lower case, without the prefixes "torch." "nccl" "mpi_".
constexpr TextRow kDatatypeNames[] = {
    {"f16", "f16"},         {"float16", "f16"},      {"half", "f16"},
    {"bf16", "bf16"},       {"bfloat16", "bf16"},    {"f32", "f32"},
    {"float32", "f32"},     {"float", "f32"},        {"real", "f32"},
    {"f64", "f64"},         {"float64", "f64"},      {"double", "f64"},
    {"double_precision", "f64"},                     {"i8", "i8"},
    {"int8", "i8"},         {"int8_t", "i8"},        {"char", "i8"},
    {"signed_char", "i8"},  {"u8", "u8"},            {"uint8", "u8"},
    {"uint8_t", "u8"},      {"unsigned_char", "u8"}, {"byte", "u8"},
    {"i16", "i16"},         {"int16", "i16"},        {"int16_t", "i16"},
    {"short", "i16"},       {"u16", "u16"},          {"uint16", "u16"},
    {"uint16_t", "u16"},    {"unsigned_short", "u16"},
    {"i32", "i32"},         {"int32", "i32"},        {"int32_t", "i32"},
    {"int", "i32"},         {"integer", "i32"},      {"u32", "u32"},
    {"uint32", "u32"},      {"uint32_t", "u32"},     {"unsigned", "u32"},
    {"i64", "i64"},         {"int64", "i64"},        {"int64_t", "i64"},
    {"long", "i64"},        {"long_long", "i64"},    {"u64", "u64"},
    {"uint64", "u64"},      {"uint64_t", "u64"},     {"unsigned_long", "u64"},
    {"bool", "bool"},       {"c_bool", "bool"},      {"object", "object"},
    {"f8e4m3", "f8e4m3"},   {"float8e4m3", "f8e4m3"}, {"float8_e4m3fn", "f8e4m3"},
    {"f8e5m2", "f8e5m2"},   {"float8e5m2", "f8e5m2"}, {"float8_e5m2", "f8e5m2"},
    {"c64", "c64"},         {"complex64", "c64"},    {"c128", "c128"},
    {"complex128", "c128"},
};

constexpr TextRow kRedopNames[] = {
    {"sum", "sum"},   {"prod", "prod"}, {"product", "prod"},         {"min", "min"},   {"max", "max"},
    {"avg", "avg"},   {"average", "avg"}, {"mean", "avg"},           {"land", "land"}, {"lor", "lor"},
    {"lxor", "lxor"}, {"band", "band"}, {"bor", "bor"},              {"bxor", "bxor"}, {"minloc", "minloc"},
    {"maxloc", "maxloc"}, {"premulsum", "premul_sum"}, {"premul_sum", "premul_sum"},
};

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return result;
}

struct TextHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
};
using KindTable = std::unordered_map<std::string, NamedKind, TextHash, std::equal_to<>>;

KindTable make_kind_table() {
  KindTable table;
#define X(enumerator, value, name, op_class) table.emplace(name, NamedKind{OpKind::enumerator, false});
  LOCKSTEP_OP_KINDS(X)
#undef X
  for (const KindRow& row : kFrameworkNames) table.emplace(row.name, NamedKind{row.kind, false});
  for (const KindRow& row : kNcclNames) table.emplace(row.name, NamedKind{row.kind, false});
  for (const KindRow& row : kDeviceNames) {
    for (const std::string_view prefix : {"cuda", "cu", "hip"}) {
      table.emplace(std::string(prefix).append(row.name), NamedKind{row.kind, false});
    }
  }
  for (const KindRow& row : kMpiNames) {
    const std::string name(row.name);
    table.emplace("mpi_" + name, NamedKind{row.kind, false});
    table.emplace("mpi_" + name + "_init", NamedKind{row.kind, true});
    table.emplace("i" + name, NamedKind{row.kind, true});
    // MPI_Comm_idup has its "i" in the middle.
    table.emplace(name == "comm_dup" ? "mpi_comm_idup" : "mpi_i" + name, NamedKind{row.kind, true});
  }
  for (const KindRow& row : kMpiPlainNames) table.emplace("mpi_" + std::string(row.name), NamedKind{row.kind, false});
  for (auto& [name, named] : table) named.nonblocking = named.nonblocking || is_immediate(named.kind);
  return table;
}

template <std::size_t N>
std::string_view find_text(const TextRow (&rows)[N], std::string_view name) {
  for (const TextRow& row : rows) {
    if (row.name == name) return row.ours;
  }
  return {};
}

std::string_view without_prefix(std::string_view text, std::string_view prefix) {
  return text.starts_with(prefix) ? text.substr(prefix.size()) : text;
}

constexpr std::size_t kLongestName = 64;

}  // namespace

std::optional<NamedKind> kind_from_native_name(std::string_view name) {
  static const KindTable table = make_kind_table();
  if (name.size() > kLongestName) return std::nullopt;
  if (const auto at = table.find(name); at != table.end()) return at->second;
  std::string folded = lower(name);
  if (folded.starts_with("pmpi_")) folded.erase(0, 1);
  if (folded.starts_with("pnccl")) return kind_from_native_name(name.substr(1));
  if (const auto at = table.find(folded); at != table.end()) return at->second;
  if (name.ends_with("()")) return kind_from_native_name(name.substr(0, name.size() - 2));
  for (const std::string_view prefix : {"dist.", "torch.distributed.", "hvd.", "c10d::", "nccl:", "gloo:", "_"}) {
    if (name.starts_with(prefix)) return kind_from_native_name(name.substr(prefix.size()));
  }
  return std::nullopt;
}

std::string_view datatype_from_native_name(std::string_view name) {
  if (const std::string_view known = find_text(kDatatypeNames, name); !known.empty()) return known;
  if (name.size() > kLongestName) return {};
  const std::string folded = lower(name);
  std::string_view bare = folded;
  for (const std::string_view prefix : {"torch.", "nccl", "mpi_"}) bare = without_prefix(bare, prefix);
  return find_text(kDatatypeNames, bare);
}

std::string_view redop_from_native_name(std::string_view name) {
  if (const std::string_view known = find_text(kRedopNames, name); !known.empty()) return known;
  if (name.size() > kLongestName) return {};
  std::string folded = lower(name);
  // The factor of a PreMulSum is each rank's own: "PREMUL_SUM(0.25)".
  if (folded.ends_with(')')) folded.erase(std::min(folded.find('('), folded.size()));
  std::string_view bare = folded;
  for (const std::string_view prefix : {"redoptype.", "reduceop.", "nccl", "mpi_"}) bare = without_prefix(bare, prefix);
  return find_text(kRedopNames, bare);
}

}  // namespace lockstep
