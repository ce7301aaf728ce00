# Installs the command, the libraries with their headers and the schemas, and exports them as the CMake package `lockstep`.
include(CMakePackageConfigHelpers)

set(LOCKSTEP_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/lockstep)

install(TARGETS lockstep RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS lockstep_format lockstep_analyzer EXPORT lockstep_targets
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(TARGET lockstep_shim)
  # Not among the libraries that programs link: it is there to be preloaded. The command looks for it here.
  install(TARGETS lockstep_shim lockstep_audit LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/lockstep)
endif()

if(TARGET lockstep_standin_nccl)
  # `lockstep rehearse` puts this folder before the real libraries: nothing else lies in it.
  install(TARGETS lockstep_standin_nccl lockstep_standin_driver lockstep_standin_cudart_12 lockstep_standin_cudart_13
          LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/lockstep/standin)
endif()

install(DIRECTORY schemas/include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY analyzer/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/lockstep/analyzer
        FILES_MATCHING PATTERN "*.h"
        PATTERN cli EXCLUDE          # the command's own
        PATTERN doctor EXCLUDE
        PATTERN job_data.h EXCLUDE)  # the inside of Job
install(DIRECTORY schemas/ DESTINATION ${CMAKE_INSTALL_DATADIR}/lockstep/schemas FILES_MATCHING PATTERN "*.json")

install(EXPORT lockstep_targets NAMESPACE lockstep:: DESTINATION ${LOCKSTEP_PACKAGE_DIR})
configure_package_config_file(cmake/lockstep-config.cmake.in ${PROJECT_BINARY_DIR}/lockstep-config.cmake
                              INSTALL_DESTINATION ${LOCKSTEP_PACKAGE_DIR})
# Before 1.0 a minor version may change the interface.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/lockstep-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/lockstep-config.cmake ${PROJECT_BINARY_DIR}/lockstep-config-version.cmake
        DESTINATION ${LOCKSTEP_PACKAGE_DIR})
