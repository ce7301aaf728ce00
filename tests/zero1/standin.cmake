# The reference optimizer over NCCL with its loops on the host, on the stand-in: built wherever the real headers are.
if(NOT LOCKSTEP_NCCL_INCLUDE_DIR OR NOT LOCKSTEP_CUDA_INCLUDE_DIR)
  message(STATUS "No nccl.h and cuda_runtime.h found: the NCCL build of examples/zero1_pipeline is not tested")
  return()
endif()
file(GLOB zero1_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/examples/zero1_pipeline/*.cc)
add_executable(zero1_standin ${zero1_sources})
target_compile_definitions(zero1_standin PRIVATE ZERO1_COMM_NCCL)
target_include_directories(zero1_standin SYSTEM PRIVATE ${LOCKSTEP_NCCL_INCLUDE_DIR} ${LOCKSTEP_CUDA_INCLUDE_DIR})
target_link_libraries(zero1_standin PRIVATE CLI11::CLI11 nlohmann_json::nlohmann_json lockstep_standin_nccl
  lockstep_standin_cudart_13)

if(TARGET lockstep_shim)
  set(over_mpi "")
  if("openmpi" IN_LIST LOCKSTEP_MPI_IMPLEMENTATIONS)
    set(over_mpi ${LOCKSTEP_MPI_BIN}/zero1_pipeline.openmpi ${LOCKSTEP_OPENMPI_RUN})
  endif()
  add_test(NAME zero1_over_nccl
    COMMAND ${LOCKSTEP_PYTHON} ${CMAKE_CURRENT_LIST_DIR}/over_nccl_test.py $<TARGET_FILE:lockstep> $<TARGET_FILE:lockstep_shim>
      $<TARGET_FILE:zero1_standin> ${over_mpi})
  set_tests_properties(zero1_over_nccl PROPERTIES LABELS standin TIMEOUT 200)
endif()
