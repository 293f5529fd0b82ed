/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "codegen/build/program.h"

#include "ir/support/bug.h"

int64_t step_buffer_offset(const StepProgram *p, const Call *call, int buf)
{
    const CallBuf *b = &call->buf[buf];
    if (b->value == CALL_NUMBER)
        return b->offset;
    int64_t base =
        b->value == VALUE_NONE ? p->plan->workspace_offset[call->node] : p->plan->offset[b->value];
    if (base < 0)
        BUG("%s reads a value without storage", call->label);
    return base + b->offset;
}
