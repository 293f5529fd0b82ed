/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Suggestions for a name that is unknown: what PyTorch's is called here, or the nearest known one.
 */
#include "frontend/language/elaborate/builtins.h"
#include "frontend/language/syntax/library.h"

#include <ctype.h>
#include <string.h>

/* The builtin with which a name has the longest part in common, if it is of four letters or more,
 * with no regard to case: groupnorm and layernorm.  Names that no function could have are not
 * searched: they may be as long as the file. */
static const char *builtin_akin(const char *name)
{
    enum { LONG = 64 };
    const char *akin = NULL;
    size_t most = 3;
    if (strnlen(name, LONG) == LONG)
        return NULL;
    for (int i = 0; i < builtin_count; i++)
        for (const char *a = builtin_table[i].name; *a; a++)
            for (const char *b = name; *b; b++) {
                size_t n = 0;
                while (a[n] && a[n] == tolower((unsigned char)b[n]))
                    n++;
                if (n > most) {
                    most = n;
                    akin = builtin_table[i].name;
                }
            }
    return akin;
}

/* A short name of which one letter is replaced: `cot` is more likely a function that is not there
 * than a slip of `cos`. */
static bool is_another_word(const char *name, const char *near)
{
    enum { SHORT = 5 };
    size_t n = strlen(name), differ = 0;
    for (size_t i = 0; n < SHORT && n == strlen(near) && i < n; i++)
        differ += tolower((unsigned char)name[i]) != near[i];
    return differ == 1;
}

/* What there is instead: where only one kind of function fits, that kind; else functions that are
 * akin by name. */
static const char *alternatives(Elab *l, const char *name, const char *wanted)
{
    const char *member = wanted ? wanted : builtin_akin(name);
    return member
               ? builtin_part(l->pool, member)
               : "docs/language.md lists the functions there are; what composes from them can be "
                 "a `block`";
}

/* Whether PyTorch's programs call a module or its functions by this name. */
static bool is_torch_module(const char *name)
{
    static const char *const modules[] = {"torch", "nn", "F", "np", "numpy"};
    for (size_t i = 0; i < sizeof modules / sizeof modules[0]; i++)
        if (strcmp(name, modules[i]) == 0)
            return true;
    return false;
}

typedef struct TorchName {
    const char *theirs, *ours;
} TorchName;

#define TORCH_NAME(theirs, ours) {#theirs, #ours},
static const TorchName functions[] = {
#include "frontend/language/elaborate/torch_names.def"
};
static const TorchName arguments[] = {
#include "frontend/language/elaborate/torch_arguments.def"
};
#undef TORCH_NAME

/* What a name of PyTorch is here, or NULL. */
static const char *ours_of(const char *name, const TorchName *names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(name, names[i].theirs) == 0)
            return names[i].ours;
    return NULL;
}

static const char *torch_name(const char *name)
{
    return ours_of(name, functions, sizeof functions / sizeof *functions);
}

bool elab_suggest_argument(Elab *l, const char *name, const char *const *names, size_t n)
{
    const char *ours = ours_of(name, arguments, sizeof arguments / sizeof *arguments);
    for (size_t i = 0; ours && i < n; i++)
        if (strcmp(ours, names[i]) == 0) {
            diag_help(l->diag, "here that is `%s`", ours);
            return true;
        }
    const char *near = nearest_word(name, names, n);
    if (near)
        diag_help(l->diag, "did you mean `%s`?", near);
    return near != NULL;
}

void elab_suggest_method(Elab *l, const char *name)
{
    const char *ours = torch_name(name);
    const char *function = ours ? ours : name;
    const char *library = library_with_block(l->pool, function);
    if (library || builtin_find(function))
        diag_help(l->diag, "functions are called: `x |> %s()`%s%s%s", function,
                  library ? ", with import \"" : "", library ? library : "", library ? "\"" : "");
    else
        diag_help(l->diag, "a tensor has .shape, .rank and .dtype");
}

void elab_suggest_name(Elab *l, const Scope *scope, const char *name, const char *wanted)
{
    const char *library = library_with_block(l->pool, name);
    if (library) {
        diag_help(l->diag, "import \"%s\"", library);
        return;
    }
    const char *ours = torch_name(name);
    if (ours) {
        library = library_with_block(l->pool, ours);
        diag_help(l->diag, "here that is `%s`%s%s%s", ours, library ? ", with import \"" : "",
                  library ? library : "", library ? "\"" : "");
        return;
    }
    if (is_torch_module(name)) {
        diag_help(l->diag, "functions stand alone; docs/from-pytorch.md says what PyTorch's are");
        return;
    }
    VEC(const char *) words = {0};
    for (; scope; scope = scope->parent)
        for (size_t i = 0; i < scope->items.len; i++)
            vec_push(l->pool, &words, scope->items.data[i].name);
    for (int i = 0; i < builtin_count; i++)
        vec_push(l->pool, &words, builtin_table[i].name);
    const char *near = nearest_word(name, words.data, words.len);
    if (near && !is_another_word(name, near))
        diag_help(l->diag, "did you mean `%s`?", near);
    else
        diag_help(l->diag, "%s", alternatives(l, name, wanted));
}
