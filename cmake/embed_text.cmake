# Turns a text file into a C++ header, so that the installed command needs no data files beside it.

# embed_text(FILE HEADER NAME): writes HEADER with `inline constexpr std::string_view NAME` = the bytes of FILE.
function(embed_text file header name)
  file(READ ${file} text)
  cmake_path(GET file FILENAME filename)
  string(CONCAT content
    "// Generated from ${filename}.\n#pragma once\n\n#include <string_view>\n\n"
    "namespace lockstep {\ninline constexpr std::string_view ${name} = R\"embedded(${text})embedded\";\n}\n")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  set(previous "")
  if(EXISTS ${header})
    file(READ ${header} previous)
  endif()
  if(NOT content STREQUAL previous)  # an unchanged header is left alone: nothing to compile again
    file(WRITE ${header} "${content}")
  endif()
endfunction()
