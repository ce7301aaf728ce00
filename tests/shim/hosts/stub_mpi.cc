// libmpi_stub.so: an MPI of one process whose calls return at once, with MPICH's types. Tests of the recorder
// that need no second rank, and the benchmark, use it: what is measured or counted is then the recorder and
// nothing else.
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace {

int g_initialized = 0;
int g_next_comm = 0x4400'0100;
int g_next_request = 0x6c00'0100;
int size_of_world() {
  const char* size = std::getenv("STUB_SIZE");
  return size != nullptr ? std::atoi(size) : 1;
}
int rank_in_world() {
  const char* rank = std::getenv("STUB_RANK");
  return rank != nullptr ? std::atoi(rank) : 0;
}

}  // namespace

// A host may leave a call by other ways than its return, as an error handler can.
extern "C" [[gnu::weak]] void stub_leave_call(int tag);

// The errno that a real library would leave behind; hosts check that they see it.
#define STUB(name, params, body)                             \
  extern "C" int P##name params { body return MPI_SUCCESS; } \
  extern "C" int name params __attribute__((weak, alias("P" #name)));

STUB(MPI_Init, (int*, char***), g_initialized = 1;)
STUB(MPI_Init_thread, (int*, char***, int required, int* provided), g_initialized = 1; *provided = required;)
STUB(MPI_Initialized, (int* flag), *flag = g_initialized;)
STUB(MPI_Finalize, (void), )
STUB(MPI_Abort, (MPI_Comm, int code), _exit(code);)
STUB(MPI_Get_library_version, (char* version, int* length), std::strcpy(version, "MPICH stub for tests");
     *length = static_cast<int>(std::strlen(version));)
STUB(MPI_Comm_rank, (MPI_Comm, int* rank), *rank = rank_in_world();)
STUB(MPI_Comm_size, (MPI_Comm, int* size), *size = size_of_world();)
STUB(MPI_Comm_test_inter, (MPI_Comm, int* flag), *flag = 0;)
STUB(MPI_Comm_group, (MPI_Comm, MPI_Group* group), *group = MPI_GROUP_EMPTY;)
STUB(MPI_Comm_remote_group, (MPI_Comm, MPI_Group* group), *group = MPI_GROUP_EMPTY;)
STUB(MPI_Group_size, (MPI_Group, int* size), *size = size_of_world();)
STUB(MPI_Group_free, (MPI_Group*), )
STUB(MPI_Group_translate_ranks, (MPI_Group, int n, const int from[], MPI_Group, int to[]),
     for (int i = 0; i < n; ++i) to[i] = from[i];)
STUB(MPI_Type_size, (MPI_Datatype type, int* size), *size = type >> 8 & 0xFF;)
STUB(MPI_Type_get_envelope, (MPI_Datatype, int* a, int* b, int* c, int* combiner), *a = *b = *c = 0;
     *combiner = MPI_COMBINER_NAMED;)
STUB(MPI_Type_get_contents, (MPI_Datatype, int, int, int, int[], MPI_Aint[], MPI_Datatype[]), )
STUB(MPI_Type_free, (MPI_Datatype*), )
STUB(MPI_Barrier, (MPI_Comm), errno = EXDEV;)
// A broadcast of 77 elements takes its time.
STUB(MPI_Bcast, (void*, int count, MPI_Datatype, int, MPI_Comm), if (count == 77) usleep(100'000);)
STUB(MPI_Allreduce, (const void* from, void* to, int count, MPI_Datatype type, MPI_Op, MPI_Comm),
     if (from != MPI_IN_PLACE)
         std::memcpy(to, from, static_cast<std::size_t>(count) * static_cast<std::size_t>(type >> 8 & 0xFF));)
STUB(MPI_Send, (const void*, int, MPI_Datatype, int, int, MPI_Comm), )
STUB(MPI_Recv, (void*, int, MPI_Datatype, int, int tag, MPI_Comm, MPI_Status*),
     if (tag >= 98 && stub_leave_call != nullptr) stub_leave_call(tag);)
STUB(MPI_Isend, (const void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request* request),
     *request = g_next_request++;)
STUB(MPI_Wait, (MPI_Request * request, MPI_Status*), *request = MPI_REQUEST_NULL;)
STUB(MPI_Test, (MPI_Request*, int* flag, MPI_Status*), *flag = 0;)
// Every tenth call finds all requests complete.
STUB(MPI_Testall, (int count, MPI_Request requests[], int* flag, MPI_Status*), static int calls = 0;
     *flag = ++calls % 10 == 0; for (int i = 0; *flag != 0 && i < count; ++i) requests[i] = MPI_REQUEST_NULL;)
STUB(MPI_Comm_dup, (MPI_Comm, MPI_Comm* made), *made = g_next_comm++;)
STUB(MPI_Comm_free, (MPI_Comm * comm), *comm = MPI_COMM_NULL;)
