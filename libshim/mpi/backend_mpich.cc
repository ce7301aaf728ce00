// MPICH's types, and of all that share its binary interface: handles are integers.
#define MPICH_SKIP_MPICXX 1  // the C++ interface would want the library
#include <mpi.h>

#define LOCKSTEP_BACKEND mpich
#define LOCKSTEP_HANDLES_ARE_VARIABLES 0
#define LOCKSTEP_HAS_LARGE_COUNTS (MPI_VERSION >= 4)
#include "mpi/backend.inc"

namespace lockstep::shim::mpi {
const Backend kMpich = {"MPICH", mpich::g_wrappers, mpich::activate};
}  // namespace lockstep::shim::mpi
