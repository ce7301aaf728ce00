// See the header.
#include "torch/tensors.h"

#include <atomic>
#include <cstring>

#include "original.h"
#include "recorder.h"

namespace lockstep::shim::torch {
namespace {

const char* const kLibraries[] = {"libtorch_cpu.", "libtorch_cpu-", "libc10.", "libc10-", nullptr};

// C interface: 0 = success.
using AskNumber = std::int32_t (*)(const Tensor*, std::int64_t*);
using AskType = std::int32_t (*)(const Tensor*, std::int32_t*);
// c10::TensorImpl::numel_custom() const, at::native::result_type(Tensor const&, Tensor const&).
using Count = std::int64_t (*)(const void* implementation);
using CommonType = std::int8_t (*)(const Tensor*, const Tensor*);

struct Functions {
  AskNumber ask_elements = nullptr;
  AskType ask_type = nullptr;
  Count count = nullptr;
  CommonType common_type = nullptr;
  const void* undefined = nullptr;  ///< implementation of a tensor that is none
};
constinit Functions g_functions;
constinit std::atomic<bool> g_loaded{false};

template <class Pointer>
void find(Pointer& place, const char* name) noexcept {
  place = reinterpret_cast<Pointer>(find_visible(name, kLibraries));
}

struct TypeRow {
  std::uint32_t value;  ///< c10::ScalarType
  std::uint32_t bytes;
  const char* name;
};
// The numbers never changed. 16 to 22 are packed types of a few bits.
constexpr TypeRow kTypes[] = {
    {0, 1, "torch.uint8"},       {1, 1, "torch.int8"},         {2, 2, "torch.int16"},
    {3, 4, "torch.int32"},       {4, 8, "torch.int64"},        {5, 2, "torch.float16"},
    {6, 4, "torch.float32"},     {7, 8, "torch.float64"},      {8, 4, "torch.complex32"},
    {9, 8, "torch.complex64"},   {10, 16, "torch.complex128"}, {11, 1, "torch.bool"},
    {12, 1, "torch.qint8"},      {13, 1, "torch.quint8"},      {14, 4, "torch.qint32"},
    {15, 2, "torch.bfloat16"},   {23, 1, "torch.float8_e5m2"}, {24, 1, "torch.float8_e4m3fn"},
    {25, 1, "torch.float8_e5m2fnuz"}, {26, 1, "torch.float8_e4m3fnuz"},
    {27, 2, "torch.uint16"},     {28, 4, "torch.uint32"},      {29, 8, "torch.uint64"},
};
const char* const kReductions[] = {"ReduceOp.SUM", "ReduceOp.AVG", "ReduceOp.PRODUCT", "ReduceOp.MIN",       "ReduceOp.MAX",
                                   "ReduceOp.BAND", "ReduceOp.BOR", "ReduceOp.BXOR",   "ReduceOp.PREMUL_SUM"};
constexpr std::uint32_t kReductionCount = sizeof kReductions / sizeof kReductions[0];

constinit Meaning g_types[kScalarTypes] = {};
constinit Meaning g_reductions[kReductionCount] = {};

Meaning meaning(const char* name, std::uint32_t bytes) noexcept {
  return Meaning{.hash = trace::text_hash(name, std::strlen(name)), .units = 1, .unit_bytes = bytes, .id = 0};
}

}  // namespace

void load_tensor_functions() noexcept {
  if (g_loaded.load(std::memory_order_acquire)) return;
  Functions found;
  find(found.ask_elements, "aoti_torch_get_numel");
  find(found.ask_type, "aoti_torch_get_dtype");
  find(found.count, "_ZNK3c1010TensorImpl12numel_customEv");
  find(found.common_type, "_ZN2at6native11result_typeERKNS_6TensorES3_");
  find(found.undefined, "_ZN3c1019UndefinedTensorImpl10_singletonE");
  g_functions = found;
  g_loaded.store(true, std::memory_order_release);
}

void name_types() noexcept {
  for (const TypeRow& row : kTypes) {
    Meaning type = meaning(row.name, row.bytes);
    type.id = intern_datatype(type.hash, row.bytes, row.name);
    g_types[row.value] = type;
  }
  for (std::uint32_t i = 0; i < kReductionCount; ++i) {
    Meaning reduction = meaning(kReductions[i], 0);
    reduction.id = intern_redop(reduction.hash, kReductions[i]);
    g_reductions[i] = reduction;
  }
}

std::int64_t elements_of(const Tensor& tensor) noexcept {
  const Functions& functions = g_functions;
  if (tensor.implementation == nullptr || tensor.implementation == functions.undefined) return -1;
  std::int64_t elements = -1;
  if (functions.ask_elements != nullptr) return functions.ask_elements(&tensor, &elements) == 0 ? elements : -1;
  return functions.count != nullptr ? functions.count(tensor.implementation) : -1;
}

std::int64_t elements_of(const Tensors& tensors) noexcept {
  std::int64_t sum = 0;
  for (const Tensor& tensor : tensors) {
    const std::int64_t elements = elements_of(tensor);
    if (elements < 0) return -1;
    sum += elements;
  }
  return sum;
}

const Meaning* type_of(const Tensor& tensor) noexcept {
  const Functions& functions = g_functions;
  if (tensor.implementation == nullptr || tensor.implementation == functions.undefined) return nullptr;
  std::int32_t type = -1;
  if (functions.ask_type != nullptr) {
    if (functions.ask_type(&tensor, &type) != 0) return nullptr;
  } else if (functions.common_type != nullptr) {
    type = functions.common_type(&tensor, &tensor);
  }
  if (type < 0 || static_cast<std::uint32_t>(type) >= kScalarTypes) return nullptr;
  const Meaning& found = g_types[type];
  return found.hash != 0 ? &found : nullptr;
}

const Meaning* reduction_of(std::uint32_t op) noexcept { return op < kReductionCount ? &g_reductions[op] : nullptr; }

}  // namespace lockstep::shim::torch
