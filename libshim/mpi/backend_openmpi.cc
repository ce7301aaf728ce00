// Open MPI's types: handles are pointers, predefined ones are addresses of the library's variables.
#define OMPI_SKIP_MPICXX 1  // the C++ interface would want the library
#include <mpi.h>

#define LOCKSTEP_BACKEND openmpi
#define LOCKSTEP_HANDLES_ARE_VARIABLES 1
#define LOCKSTEP_HAS_LARGE_COUNTS 0
#include "mpi/backend.inc"

namespace lockstep::shim::mpi {
const Backend kOpenMpi = {"Open MPI", openmpi::g_wrappers, openmpi::activate};
}  // namespace lockstep::shim::mpi
