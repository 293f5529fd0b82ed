/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "codegen/build/tuning.h"

#include "codegen/build/hash.h"

#include <string.h>

int family_variants(const KernelFamily *f)
{
    int n = 0;
    while (f->variant_name(n))
        n++;
    return n;
}

int family_find(const KernelFamily *f, const char *name)
{
    for (int i = 0; f->variant_name(i); i++)
        if (strcmp(f->variant_name(i), name) == 0)
            return i;
    return -1;
}

const char *tuning_problem(Pool *pool, const KernelFamily *f, const char *key)
{
    return pool_printf(pool, "%s %s", f->name, content_key(pool, key, strlen(key)));
}

int tuning_variant(const Tuning *tuning, const KernelFamily *f, const char *problem)
{
    if (!tuning)
        return 0;
    if (tuning->all)
        return tuning->all < family_variants(f) ? tuning->all : 0;
    const uint64_t *found = map_find(&tuning->chosen, problem);
    return found && *found < (uint64_t)family_variants(f) ? (int)*found : 0;
}
