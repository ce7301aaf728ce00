# Installs the build tree into a scratch prefix, then builds and runs the consumer against it and nothing else.
# cmake -DBUILD_DIR=... -DSOURCE_DIR=... -DSCRATCH_DIR=... [-DGENERATOR= -DCXX_COMPILER= -DCXX_FLAGS= -DBUILD_TYPE=] -P run.cmake
file(REMOVE_RECURSE ${SCRATCH_DIR})
function(run)
  execute_process(COMMAND ${ARGV} COMMAND_ERROR_IS_FATAL ANY)
endfunction()
run(${CMAKE_COMMAND} --install ${BUILD_DIR} --prefix ${SCRATCH_DIR}/prefix)
run(${CMAKE_COMMAND} -S ${SOURCE_DIR} -B ${SCRATCH_DIR}/build -G ${GENERATOR}
    -DCMAKE_PREFIX_PATH=${SCRATCH_DIR}/prefix -DCMAKE_CXX_COMPILER=${CXX_COMPILER} -DCMAKE_CXX_FLAGS=${CXX_FLAGS}
    -DCMAKE_BUILD_TYPE=${BUILD_TYPE})
run(${CMAKE_COMMAND} --build ${SCRATCH_DIR}/build)
run(${CMAKE_CTEST_COMMAND} --test-dir ${SCRATCH_DIR}/build --output-on-failure)
run(${SCRATCH_DIR}/prefix/bin/lockstep version)
if(REHEARSE_PROGRAM)  # the installed command finds the installed stand-ins
  run(${SCRATCH_DIR}/prefix/bin/lockstep rehearse --no-record -- ${REHEARSE_PROGRAM} 2)
endif()
