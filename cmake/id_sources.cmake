# SPDX-License-Identifier: GPL-3.0-or-later
# The sources that decide what is found in the cache.  ARGN: CONFIGURE_DEPENDS in a project.
# generator: what code is generated; the generator, the table of operations and what the generator includes.
# solver: how a problem is answered; what the problem is, is part of an answer's key.
function(id_sources what folder out)
  if(what STREQUAL "generator")
    file(GLOB_RECURSE sources ${ARGN} ${folder}/codegen/*.c ${folder}/codegen/*.h
         ${folder}/codegen/*.cuh ${folder}/ir/*.def ${folder}/ir/*.h
         ${folder}/ir/support/*.h ${folder}/ir/workspace.c ${folder}/ir/winograd.c ${folder}/passes/memplan/memplan.h ${folder}/passes/memplan/loop_plan.c ${folder}/passes/memplan/loop_plan.h ${folder}/runtime/abi.h
         ${folder}/runtime/status.h ${folder}/runtime/cuda/*.h ${folder}/runtime/cuda/cudnn_plan.c
         ${folder}/runtime/cuda/plan.c)
  else()
    file(GLOB_RECURSE sources ${ARGN} ${folder}/passes/remat/*.c ${folder}/passes/remat/*.h ${folder}/passes/remat/*.def
         ${folder}/ir/support/*.c ${folder}/ir/support/*.h)
  endif()
  list(SORT sources)
  set(${out} ${sources} PARENT_SCOPE)
endfunction()

# id_header(WHAT TARGET PATH): generates the header PATH for the sources of TARGET.
function(id_header what target path)
  id_sources(${what} ${CMAKE_SOURCE_DIR} sources CONFIGURE_DEPENDS)
  set(header ${CMAKE_BINARY_DIR}/generated/${path})
  add_custom_command(OUTPUT ${header} DEPENDS ${sources} cmake/source_id.cmake cmake/id_sources.cmake
    COMMAND ${CMAKE_COMMAND} -DWHAT=${what} -DSOURCE=${CMAKE_SOURCE_DIR} -DOUT=${header}
            -P ${CMAKE_SOURCE_DIR}/cmake/source_id.cmake)
  add_custom_target(scrimp_${what}_id DEPENDS ${header})
  add_dependencies(${target} scrimp_${what}_id)
  target_include_directories(${target} PRIVATE ${CMAKE_BINARY_DIR}/generated)
endfunction()
