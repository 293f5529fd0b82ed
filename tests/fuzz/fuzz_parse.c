/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Any bytes as a model file: a tree that prints, or at least one error that prints. */
#include "fuzz_target.h"

#include "frontend/language/frontend.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static FILE *sink;
    if (!sink && !(sink = fopen("/dev/null", "w")))
        abort();
    Pool *pool = pool_new();
    Diag *diag = diag_new(pool);
    Ast *ast = frontend_parse_text(pool, diag, "fuzz.scrimp", (const char *)data, size);
    if ((ast == NULL) != (diag_error_count(diag) > 0))
        abort();
    if (ast) {
        const OptionInfo *options;
        frontend_options(pool, ast, &options);
        frontend_print_ast(ast, sink);
    }
    diag_print(diag, sink, false);
    diag_print_json(diag, sink);
    pool_free(pool);
    return 0;
}
