# SPDX-License-Identifier: GPL-3.0-or-later
# Everything comes packaged with Debian 12; ./bootstrap installs it.
find_package(PkgConfig REQUIRED)
pkg_check_modules(jansson REQUIRED IMPORTED_TARGET jansson)
find_package(ZLIB REQUIRED)
pkg_check_modules(turbojpeg REQUIRED IMPORTED_TARGET libturbojpeg)
pkg_check_modules(png REQUIRED IMPORTED_TARGET libpng)
pkg_check_modules(protobuf_c REQUIRED IMPORTED_TARGET libprotobuf-c)
find_program(PROTOC_C protoc-c REQUIRED)
find_package(Threads REQUIRED)
find_package(FLEX 2.6 REQUIRED)
find_package(BISON 3.8 REQUIRED)

# libgccjit lives in gcc's versioned folder, which no default search path names.
file(GLOB gccjit_includes /usr/lib/gcc/*/*/include /usr/local/lib/gcc/*/*/include)
file(GLOB gccjit_libs /usr/lib/gcc/*/* /usr/local/lib/gcc/*/*)
find_path(GCCJIT_INCLUDE libgccjit.h HINTS ${gccjit_includes})
find_library(GCCJIT_LIBRARY gccjit HINTS ${gccjit_libs})
if(NOT GCCJIT_INCLUDE OR NOT GCCJIT_LIBRARY)
  message(FATAL_ERROR "libgccjit not found: install libgccjit-12-dev (./bootstrap build does)")
endif()
add_library(libgccjit INTERFACE)
target_include_directories(libgccjit SYSTEM INTERFACE ${GCCJIT_INCLUDE})
target_link_libraries(libgccjit INTERFACE ${GCCJIT_LIBRARY})
