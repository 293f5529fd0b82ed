/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "codegen/cuda/library/library.h"

#include "ir/support/bug.h"

#include <string.h>

/* The first that takes a node computes it. */
static const LibraryCode *const libraries[] = {&cublaslt_library, &cudnn_library};
enum { LIBRARIES = sizeof libraries / sizeof *libraries };

static const LibraryCode *named(const char *name)
{
    for (int i = 0; i < LIBRARIES; i++)
        if (strcmp(libraries[i]->name, name) == 0)
            return libraries[i];
    BUG("there is no library %s", name);
}

bool cuda_library(const Graph *g, const Node *n, const LibraryQuery *ask, LibraryUse *use)
{
    for (int i = 0; i < LIBRARIES; i++)
        if (libraries[i]->takes(g, n, ask, use))
            return true;
    return false;
}

const char *cuda_library_version(Pool *pool, const char *library)
{
    return named(library)->version(pool);
}

bool cuda_library_lowers(const MatrixNode *m, const char *what)
{
    const Attr *library = node_attr(m->node, ATTR_library);
    if (library)
        named(library->u.s)->lower(m, what);
    return library;
}

const char *cuda_library_plan(Pool *pool, const Call *call, const char *text, const char *arch,
                              const char **error)
{
    const LibraryCode *library = named(call->library);
    return library->plan ? library->plan(pool, call->desc, arch, error) : text;
}

void library_write(StrBuf *out, const PlanLines *lines, const void *record)
{
    for (int i = 0; i < lines->n; i++) {
        int64_t value;
        memcpy(&value, (const char *)record + lines->field[i].at, sizeof value);
        strbuf_printf(out, "%s %lld\n", lines->field[i].key, (long long)value);
    }
}
