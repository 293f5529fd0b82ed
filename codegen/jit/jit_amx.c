/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "codegen/jit/jit_amx.h"

#include <stdio.h>

enum { REGISTERS = 8, PALETTE = 1 };

/* The operand of LDTILECFG: every register whole. */
typedef struct AmxConfiguration {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} AmxConfiguration;

void amx_begin(Jit *j)
{
    AmxConfiguration all = {.palette = PALETTE};
    for (int i = 0; i < REGISTERS; i++) {
        all.row_bytes[i] = AMX_ROW_BYTES;
        all.rows[i] = AMX_ROWS;
    }
    JitValue table = jit_table(j, jit_types(j)->u8, &all, sizeof all, 1);
    jit_asm_void(j, "ldtilecfg (%0)", 1, &table, (const char *const[]){"r"});
}

void amx_end(Jit *j)
{
    jit_asm_void(j, "tilerelease", 0, NULL, NULL);
}

/* arch_prctl(ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA), number 158 of Linux's system calls.  Where
 * the system says no - a thread has an alternate signal stack that is too small for the registers -
 * the first kernel that uses them ends the process with SIGILL.  The registers that the call
 * changes are saved below the 128 bytes that a function may use without saying so. */
void amx_ask_permission(Jit *j)
{
    jit_asm_void(j,
                 "lea -128(%%rsp), %%rsp\n\t"
                 "push %%rax\n\tpush %%rcx\n\tpush %%rsi\n\tpush %%rdi\n\tpush %%r11\n\t"
                 "mov $158, %%eax\n\tmov $0x1023, %%edi\n\tmov $18, %%esi\n\tsyscall\n\t"
                 "pop %%r11\n\tpop %%rdi\n\tpop %%rsi\n\tpop %%rcx\n\tpop %%rax\n\t"
                 "lea 128(%%rsp), %%rsp",
                 0, NULL, NULL);
}

void amx_zero(Jit *j, int to)
{
    char text[32];
    snprintf(text, sizeof text, "tilezero %%%%tmm%d", to);
    jit_asm_void(j, text, 0, NULL, NULL);
}

static void move(Jit *j, const char *format, int reg, JitValue pointer, JitValue stride)
{
    const JitValue in[] = {pointer, stride};
    char text[48];
    snprintf(text, sizeof text, format, reg);
    jit_asm_void(j, text, 2, in, (const char *const[]){"r", "r"});
}

void amx_load(Jit *j, int to, JitValue pointer, JitValue stride)
{
    move(j, "tileloadd (%%0,%%1,1), %%%%tmm%d", to, pointer, stride);
}

void amx_store(Jit *j, int from, JitValue pointer, JitValue stride)
{
    move(j, "tilestored %%%%tmm%d, (%%0,%%1,1)", from, pointer, stride);
}

void amx_multiply_add(Jit *j, int sum, int a, int b)
{
    char text[64];
    snprintf(text, sizeof text, "tdpbf16ps %%%%tmm%d, %%%%tmm%d, %%%%tmm%d", b, a, sum);
    jit_asm_void(j, text, 0, NULL, NULL);
}

/* --- what is put into them --- */

JitValue amx_round(Jit *j, JitValue low, JitValue high)
{
    const JitValue in[] = {low, high};
    return jit_asm(j, "vcvtne2ps2bf16 %1, %2, %0", jit_types(j)->vi, "=v", 2, in,
                   (const char *const[]){"v", "v"});
}

/* Words 0..15 and 16..31 of a vector in turns. */
static JitValue in_turns(Jit *j, JitValue words)
{
    JitValue lane[AMX_ROWS];
    for (int i = 0; i < AMX_ROWS; i++)
        lane[i] = jit_i32(j, i | (AMX_ROWS + i) << 16);
    const JitValue in[] = {words, jit_from_lanes(j, jit_types(j)->vi, lane)};
    return jit_asm(j, "vpermw %1, %2, %0", jit_types(j)->vi, "=v", 2, in,
                   (const char *const[]){"v", "v"});
}

JitValue amx_round_pairs(Jit *j, JitValue first, JitValue second)
{
    return in_turns(j, amx_round(j, first, second));
}

JitValue amx_load_pairs(Jit *j, JitValue first, JitValue second)
{
    const JitValue in[] = {first, second};
    JitValue words = jit_asm_load(j, "vmovdqu32 (%1), %t0\n\tvinserti64x4 $1, (%2), %0, %0",
                                  jit_types(j)->vi, "=&v", 2, in, (const char *const[]){"r", "r"});
    return in_turns(j, words);
}
