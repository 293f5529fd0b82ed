# SPDX-License-Identifier: GPL-3.0-or-later
# Writes OUT: the files of FOLDER as C strings, device_names and device_texts.  Run as a script.
file(GLOB files ${FOLDER}/*.cuh)
list(SORT files)
foreach(file ${files})
  get_filename_component(name ${file} NAME_WE)
  file(READ ${file} bytes HEX)
  string(REGEX REPLACE "(..)" "'\\\\x\\1'," bytes "${bytes}")
  string(APPEND strings "static const char text_${name}[] = {${bytes}0};\n")
  string(APPEND names "\"${name}.cuh\", ")
  string(APPEND texts "text_${name}, ")
endforeach()
file(WRITE ${OUT} "${strings}static const char *const device_names[] = {${names}};
static const char *const device_texts[] = {${texts}};\n")
