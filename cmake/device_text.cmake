# SPDX-License-Identifier: GPL-3.0-or-later
# Writes OUT: the files of FOLDER as C strings, {name, text} a file.  Run as a script.
file(GLOB files ${FOLDER}/*.cuh)
list(SORT files)
set(tables "")
set(rows "")
foreach(file ${files})
  get_filename_component(name ${file} NAME_WE)
  file(READ ${file} bytes HEX)
  string(REGEX REPLACE "(..)" "'\\\\x\\1'," bytes "${bytes}")
  string(APPEND tables "static const char text_${name}[] = {${bytes}0};\n")
  string(APPEND rows "    {\"${name}\", text_${name}},\n")
endforeach()
file(WRITE ${OUT} "${tables}static const struct {\n    const char *name, *text;\n} device_texts[] = {\n${rows}};\n")
