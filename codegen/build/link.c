/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "codegen/build/link.h"

#include "codegen/build/fd.h"

typedef VEC(const char *) Options;

static void add_option(Pool *pool, Options *o, const char *option)
{
    vec_push(pool, o, "-Xlinker");
    vec_push(pool, o, option);
}

/* Of what is linked only the step itself is to be seen: another step may have kernels of the same
 * names. */
static const char *seen_names(const StepProgram *p, const Scratch *scratch)
{
    const char *path = scratch_path(p->pool, scratch, "step", "exports");
    StrBuf text = strbuf_new(p->pool);
    strbuf_put(&text, "{ global: ");
    for (int i = 0; p->link && i < p->link->n_shown; i++)
        strbuf_printf(&text, "%s; ", p->link->shown[i]);
    if (!p->link)
        strbuf_printf(&text, "%s; ", p->symbol);
    strbuf_put(&text, "local: *; };\n");
    fd_create(path, text.text, text.len); /* if not, the linker says so */
    return pool_printf(p->pool, "--version-script=%s", path);
}

static void add_link(const StepProgram *p, const Scratch *scratch, Options *o)
{
    const StepLink *link = p->link;
    const char *path = scratch_path(p->pool, scratch, "linked", "o");
    fd_create(path, link->object, link->object_bytes); /* if not, the linker says so */
    vec_push(p->pool, o, path);
    for (int i = 0; i < link->n_shown; i++)
        add_option(p->pool, o,
                   pool_printf(p->pool, "--defsym=%s=%s", link->shown[i], link->inside[i]));
}

const char *const *link_options(const StepProgram *p, const Scratch *scratch, int *n)
{
    Options o = {0};
    for (int k = 0; k < p->n_kernels && p->backend->linked; k++)
        vec_push(p->pool, &o, scratch_path(p->pool, scratch, p->kernel_key[k], p->backend->object));
    if (p->link)
        add_link(p, scratch, &o);
    add_option(p->pool, &o, seen_names(p, scratch));
    *n = (int)o.len;
    return o.data;
}
