/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Ahead of time: a shared object without scrimp, and the header that describes its memory. */
#include "codegen/build/compile.h"
#include "codegen/build/export_header.h"

#include <string.h>

bool codegen_export(Pool *pool, const Graph *g, const MemPlan *plan, const CodegenOptions *o,
                    const ExportFiles *files, const char **error)
{
    BuiltStep built;
    const Target *target = codegen_target(pool, o->march, false, error);
    if (!target)
        return false;
    StepProgram *p = step_program(pool, g, plan, step_target(o, target), error);
    if (!p)
        return false;
    p->symbol = pool_printf(pool, "%s_step", files->name);
    if (!codegen_build(p, o, &built, error) ||
        !codegen_write(pool, files->so_path, built.so, built.so_bytes, 0777, error))
        return false;
    const char *path = files->header_path;
    const char *text =
        path ? export_header(pool, g, plan, files->name, files->inference, NULL) : NULL;
    return !text || codegen_write(pool, path, text, strlen(text), 0666, error);
}
