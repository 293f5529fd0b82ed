# SPDX-License-Identifier: GPL-3.0-or-later
add_library(scrimp_warnings INTERFACE)
target_compile_options(scrimp_warnings INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wdouble-promotion -Wstrict-prototypes
  -Wmissing-prototypes -Wcast-qual -Wundef -Wvla -Wswitch-enum -Wimplicit-fallthrough)
if(SCRIMP_WERROR)
  target_compile_options(scrimp_warnings INTERFACE -Werror)
endif()
