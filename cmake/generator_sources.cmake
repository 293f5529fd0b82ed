# Everything that decides what code is generated: the generator, the table of operations and what the
# generator includes.  ARGN: CONFIGURE_DEPENDS in a project.
function(generator_sources folder out)
  file(GLOB sources ${ARGN} ${folder}/codegen/*.c ${folder}/codegen/*.h ${folder}/ir/*.def ${folder}/ir/*.h
       ${folder}/ir/support/*.h ${folder}/ir/cost_rules.c ${folder}/passes/memplan/memplan.h ${folder}/runtime/abi.h)
  list(SORT sources)
  set(${out} ${sources} PARENT_SCOPE)
endfunction()
