/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Any bytes as a model file, elaborated in every mode: a graph, or at least one error. */
#include "fuzz_target.h"

#include "frontend/language/frontend.h"

#include <stdlib.h>

/* False when the text does not even parse. */
static bool lower_in_mode(const uint8_t *data, size_t size, FrontendMode mode)
{
    Pool *pool = pool_new();
    Diag *diag = diag_new(pool);
    Ast *ast = frontend_parse_text(pool, diag, "fuzz.scrimp", (const char *)data, size);
    if (ast) {
        FrontendOptions options = {.mode = mode};
        Graph *graph = frontend_lower(pool, diag, ast, &options);
        if ((graph == NULL) != (diag_error_count(diag) > 0))
            abort();
    }
    bool parsed = ast != NULL;
    pool_free(pool);
    return parsed;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (lower_in_mode(data, size, FRONTEND_TRAIN)) {
        lower_in_mode(data, size, FRONTEND_EVAL);
        lower_in_mode(data, size, FRONTEND_INFER);
    }
    return 0;
}
