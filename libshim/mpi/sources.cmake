# MPI: the entries and one backend for each implementation whose header is there.
list(APPEND LOCKSTEP_SHIM_SOURCES mpi/dispatch.cc mpi/entries.S mpi/requests.cc)
foreach(backend openmpi mpich)
  string(TOUPPER ${backend} upper)
  if(EXISTS ${LOCKSTEP_${upper}_INCLUDE_DIR}/mpi.h)
    list(APPEND LOCKSTEP_SHIM_SOURCES mpi/backend_${backend}.cc)
    list(APPEND LOCKSTEP_SHIM_DEFINITIONS LOCKSTEP_HAS_${upper})
    # As a system directory: its warnings are not ours.
    set_source_files_properties(mpi/backend_${backend}.cc PROPERTIES
      COMPILE_OPTIONS "-isystem;${LOCKSTEP_${upper}_INCLUDE_DIR}")
  else()
    message(STATUS "No ${backend} header in ${LOCKSTEP_${upper}_INCLUDE_DIR}: that backend is left out")
  endif()
endforeach()
