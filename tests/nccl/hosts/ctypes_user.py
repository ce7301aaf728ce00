"""Uses NCCL as vLLM does: opened by name through ctypes. One rank; prints what the calls give."""
import ctypes
import sys

nccl = ctypes.CDLL(sys.argv[1] if len(sys.argv) > 1 else "libnccl.so.2")


class UniqueId(ctypes.Structure):
    _fields_ = [("internal", ctypes.c_byte * 128)]


version = ctypes.c_int()
print("version", nccl.ncclGetVersion(ctypes.byref(version)), version.value)
unique_id = UniqueId()
print("id", nccl.ncclGetUniqueId(ctypes.byref(unique_id)))
nccl.ncclCommInitRank.argtypes = [ctypes.POINTER(ctypes.c_void_p), ctypes.c_int, UniqueId, ctypes.c_int]
comm = ctypes.c_void_p()
print("init", nccl.ncclCommInitRank(ctypes.byref(comm), 1, unique_id, 0))
buffer = ctypes.create_string_buffer(1024)
nccl.ncclAllReduce.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p]
address = ctypes.addressof(buffer)
for count in (1, 2, 3):
    print("all_reduce", nccl.ncclAllReduce(address, address, count, 7, 0, comm, None))
nccl.ncclCommDestroy.argtypes = [ctypes.c_void_p]
print("destroy", nccl.ncclCommDestroy(comm))
