# SPDX-License-Identifier: GPL-3.0-or-later
# Writes OUT: the files of the pattern FILES as C strings text_NAME, or, with LIST, as the arrays LIST_names and LIST_texts.
# Run as a script.
file(GLOB files ${FILES})
list(SORT files)
foreach(file ${files})
  get_filename_component(whole ${file} NAME)
  if(LIST)
    string(MAKE_C_IDENTIFIER ${whole} name)
  else()
    get_filename_component(name ${file} NAME_WE)
  endif()
  file(READ ${file} bytes HEX)
  string(REGEX REPLACE "(..)" "'\\\\x\\1'," bytes "${bytes}")
  string(APPEND strings "static const char text_${name}[] = {${bytes}0};\n")
  string(APPEND names "\"${whole}\", ")
  string(APPEND texts "text_${name}, ")
endforeach()
if(LIST)
  string(APPEND strings "static const char *const ${LIST}_names[] = {${names}};\n"
    "static const char *const ${LIST}_texts[] = {${texts}};\n")
endif()
file(WRITE ${OUT} "${strings}")
