/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "codegen/build/exported_object.h"

/* EXPORTED_OBJECT: the path of the file in the build tree. */
__asm__(".section .rodata\n"
        ".balign 16\n"
        "exported_object_begin: .incbin \"" EXPORTED_OBJECT "\"\n"
        "exported_object_end:\n"
        ".global exported_object_begin, exported_object_end\n"
        ".hidden exported_object_begin, exported_object_end\n"
        ".previous\n");

extern const char exported_object_begin[], exported_object_end[];

const void *exported_object(size_t *bytes)
{
    *bytes = (size_t)(exported_object_end - exported_object_begin);
    return exported_object_begin;
}
