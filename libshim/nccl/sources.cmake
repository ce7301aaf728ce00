# NCCL: nothing of it is needed to build. Where its header is, the declarations here are compared with it.
find_path(LOCKSTEP_NCCL_INCLUDE_DIR nccl.h PATHS /usr/local/cuda/include PATH_SUFFIXES nccl
          DOC "Where nccl.h is; without it libshim/nccl/api.h is not compared with it")
find_path(LOCKSTEP_CUDA_INCLUDE_DIR cuda_runtime.h PATHS /usr/local/cuda/include)
if(LOCKSTEP_NCCL_INCLUDE_DIR AND LOCKSTEP_CUDA_INCLUDE_DIR)
  add_library(lockstep_nccl_header_check OBJECT nccl/header_check.cc)
  target_include_directories(lockstep_nccl_header_check PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
  target_include_directories(lockstep_nccl_header_check SYSTEM PRIVATE
    ${LOCKSTEP_NCCL_INCLUDE_DIR} ${LOCKSTEP_CUDA_INCLUDE_DIR})
else()
  message(STATUS "No nccl.h: libshim/nccl/api.h is not compared with it")
endif()
list(APPEND LOCKSTEP_SHIM_SOURCES
  nccl/dispatch.cc nccl/entries.cc nccl/lifetimes.cc nccl/names.cc cuda/entries.cc cuda/waiting.cc)
