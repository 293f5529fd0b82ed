/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Ahead of time: a shared object without scrimp, and the header that describes its memory. */
#include "codegen/build/compile.h"
#include "codegen/build/export_header.h"
#include "codegen/build/fd.h"

#include <errno.h>
#include <string.h>

bool codegen_export(Pool *pool, const Graph *g, const MemPlan *plan, const CodegenOptions *o,
                    const ExportFiles *files, const char **error)
{
    const Target *target = codegen_target(pool, o->march, false, error);
    if (!target)
        return false;
    StepProgram *p = step_program(pool, g, plan, step_target(o, target), error);
    if (!p)
        return false;
    p->symbol = pool_printf(pool, "%s_step", files->name);
    if (!codegen_build_so(p, o, files->so_path, error))
        return false;
    const char *path = files->header_path;
    const char *text = path ? export_header(pool, g, plan, files->name) : NULL;
    if (!text || fd_replace(pool, path, text, strlen(text), 0666, true))
        return true;
    *error = pool_printf(pool, "cannot write %s: %s", path, strerror(errno));
    return false;
}
