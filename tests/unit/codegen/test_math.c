/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Vector mathematics against libm in double, in units in the last place, and the lane primitives
 * against scalar C, for every instruction set that this machine runs. */
#include "check.h"
#include "codegen/cpu/point/point_jit.h"
#include "codegen/jit/jit.h"
#include "ir/eval.h"

#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* out[i] = f(a[i], b[i]) on whole vectors of 32-bit words. */
typedef void Kernel(char *const *buf, int64_t begin, int64_t end, char *scratch);
typedef JitValue Make(Jit *j, JitValue a, JitValue b);

enum { POINTS = 1 << 15, SPECIALS = 32 };

/* --- what is tested --- */

#define UNARY(name, call)                                                                          \
    static JitValue make_##name(Jit *j, JitValue a, JitValue b)                                    \
    {                                                                                              \
        (void)b;                                                                                   \
        return call;                                                                               \
    }
UNARY(exp, jit_vexp(j, a))
UNARY(exp_below, jit_vexp_below(j, jit_vmin(j, a, jit_vf(j, 0))))
UNARY(log, jit_vlog(j, a))
UNARY(sin, jit_vsin(j, a))
UNARY(cos, jit_vcos(j, a))
UNARY(tanh, jit_vtanh(j, a))
UNARY(sigmoid, jit_vsigmoid(j, a))
UNARY(cdf, jit_vnormal_cdf(j, a, NULL))
UNARY(sqrt, jit_vsqrt(j, a))
UNARY(abs, jit_vabs(j, a))
UNARY(relu, jit_vrelu(j, a))
UNARY(bf16, jit_vround_bf16(j, a))
UNARY(to_int, jit_bitcast(j, jit_tmp(j, jit_vf_to_vi(j, a)), jit_types(j)->vf))
UNARY(from_int, jit_vi_to_vf(j, jit_bitcast(j, a, jit_types(j)->vi)))
UNARY(hsum, jit_splat(j, jit_hsum(j, a)))
UNARY(hmax, jit_splat(j, jit_hmax(j, a)))

static JitValue point1(Jit *j, OpKind op, bool flag, JitValue a)
{
    PointInstr i = {.op = op, .dtype = DTYPE_F32, .from = DTYPE_F32, .n_in = 1, .flag = flag};
    return point_apply(j, &i, &a);
}
UNARY(gelu, point1(j, OP_gelu, false, a))
UNARY(gelu_tanh, point1(j, OP_gelu, true, a))
UNARY(silu, point1(j, OP_silu, false, a))
UNARY(erf, jit_verf(j, a))
UNARY(expm1, jit_vexpm1_negative(j, a))
UNARY(log1p, jit_vlog1p_fraction(j, jit_vmin(j, jit_vmax(j, a, jit_vf(j, 0)), jit_vf(j, 1))))
UNARY(mish, point1(j, OP_mish, false, a))
UNARY(hardswish, point1(j, OP_hardswish, false, a))

/* With the number 1, as users mostly have it, or 2. */
static JitValue with_number(Jit *j, OpKind op, double number, JitValue a)
{
    PointInstr i = {
        .op = op, .dtype = DTYPE_F32, .from = DTYPE_F32, .n_in = 1, .a = number, .b = number};
    return point_apply(j, &i, &a);
}
UNARY(elu, with_number(j, OP_elu, 1, a))
UNARY(softplus, with_number(j, OP_softplus, 1, a))
UNARY(softplus_2, with_number(j, OP_softplus, 2, a))

#define BINARY(name, call)                                                                         \
    static JitValue make_##name(Jit *j, JitValue a, JitValue b)                                    \
    {                                                                                              \
        return call;                                                                               \
    }
BINARY(max, jit_vmax(j, a, b))
BINARY(min, jit_vmin(j, a, b))
BINARY(pow, jit_vpow(j, a, b))
BINARY(less, jit_vchoose(j, JIT_LT, a, b, jit_vf(j, 1), jit_vf(j, 0)))

static JitValue int_vector(Jit *j, JitValue a)
{
    return jit_tmp(j, jit_bitcast(j, a, jit_types(j)->vi));
}

/* All twelve comparisons in the bits of one word: float in 0-5, integer in 6-11. */
static JitValue make_compare(Jit *j, JitValue a, JitValue b)
{
    JitValue all = jit_vi(j, 0), ia = int_vector(j, a), ib = int_vector(j, b);
    for (int op = JIT_EQ; op <= JIT_GE; op++) {
        JitValue f = jit_vmask(j, (JitCompare)op, a, b), i = jit_vmask(j, (JitCompare)op, ia, ib);
        all = jit_tmp(j, jit_or(j, all, jit_and(j, f, jit_vi(j, 1 << op))));
        all = jit_tmp(j, jit_or(j, all, jit_and(j, i, jit_vi(j, 1 << (6 + op)))));
    }
    return jit_bitcast(j, all, jit_types(j)->vf);
}

static JitValue wide(Jit *j, JitValue a, JitValue b, bool high)
{
    JitType vu = jit_types(j)->vu;
    JitValue h, l;
    jit_vmul_wide(j, jit_bitcast(j, a, vu), jit_bitcast(j, b, vu), &h, &l);
    return jit_bitcast(j, high ? h : l, jit_types(j)->vf);
}
BINARY(mul_high, wide(j, a, b, true))
BINARY(mul_low, wide(j, a, b, false))

typedef struct Function {
    const char *name;
    Make *make;
    double (*reference)(double);
    double low, high, ulp;
} Function;

/* Past the documented range: NaN rather than a wrong number. */
static double ref_sin(double x)
{
    return fabs(x) < JIT_ANGLE_MAX ? sin(x) : (double)NAN;
}
static double ref_cos(double x)
{
    return fabs(x) < JIT_ANGLE_MAX ? cos(x) : (double)NAN;
}
static double ref_sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}
static double ref_exp_below(double x)
{
    return x > 0 ? 1 : exp(x);
}
static double ref_cdf(double x)
{
    return 0.5 * erfc(-x * 0.70710678118654752);
}
static double ref_gelu(double x)
{
    return x * ref_cdf(x);
}
static double ref_gelu_tanh(double x)
{
    double z = 0.79788456080286535588 * (x + 0.044715 * x * x * x);
    return x * ref_sigmoid(2 * z);
}
static double ref_silu(double x)
{
    return x * ref_sigmoid(x);
}
static double ref_expm1(double x)
{
    return x > 0 ? 0 : expm1(x);
}
static double ref_log1p(double x)
{
    return log1p(x < 0 ? 0 : x > 1 ? 1 : x);
}
static double ref_elu(double x)
{
    return x > 0 ? x : expm1(x);
}
static double ref_softplus(double x)
{
    return (x > 0 ? x : x != x ? x : 0) + log1p(exp(-fabs(x)));
}
static double ref_softplus_2(double x)
{
    return ref_softplus(2 * x) / 2;
}
static double ref_mish(double x)
{
    return x * tanh(ref_softplus(x));
}
static double ref_hardswish(double x)
{
    double s = x + 3 < 0 ? 0 : x + 3 > 6 ? 6 : x + 3;
    return x * s / 6;
}
static double ref_relu(double x)
{
    return x <= 0 ? 0 : x;
}

static const Function functions[] = {
    {"exp", make_exp, exp, -87.33654022216797, 89, 1.5},
    {"exp near 0", make_exp, exp, -1, 1, 1.5},
    {"exp below 0", make_exp_below, ref_exp_below, -87.33654022216797, 0, 1.5},
    {"log", make_log, log, 0, 4, 1.5},
    {"log of large", make_log, log, 1, 3e38, 1.5},
    {"sin", make_sin, ref_sin, -10, 10, 2},
    {"sin of large", make_sin, ref_sin, -1e5, 1e5, 2.5},
    {"sin near 0", make_sin, ref_sin, -1e-3, 1e-3, 1},
    {"cos", make_cos, ref_cos, -10, 10, 2},
    {"cos of large", make_cos, ref_cos, -1e5, 1e5, 2.5},
    {"cos near 0", make_cos, ref_cos, -1e-3, 1e-3, 1},
    {"tanh", make_tanh, tanh, -10, 10, 2.5},
    {"tanh near 0", make_tanh, tanh, -1e-3, 1e-3, 1.5},
    {"sigmoid", make_sigmoid, ref_sigmoid, -85, 40, 3},
    /* the tail's error is that of x^2, rounded before the exponential */
    {"cdf", make_cdf, ref_cdf, -4, 6, 16},
    {"gelu", make_gelu, ref_gelu, -4, 8, 16},
    {"gelu, tanh form", make_gelu_tanh, ref_gelu_tanh, -4, 8, 24},
    {"silu", make_silu, ref_silu, -40, 40, 4},
    {"erf", make_erf, erf, -4, 4, 2},
    {"erf near 0", make_erf, erf, -1e-3, 1e-3, 1},
    {"expm1", make_expm1, ref_expm1, -40, 0, 1.5},
    {"expm1 near 0", make_expm1, ref_expm1, -1e-3, 0, 1},
    {"log1p", make_log1p, ref_log1p, 0, 1, 2},
    {"log1p near 0", make_log1p, ref_log1p, 0, 1e-3, 1.5},
    {"elu", make_elu, ref_elu, -20, 5, 1.5},
    {"softplus", make_softplus, ref_softplus, -85, 40, 2.5},
    {"softplus, beta 2", make_softplus_2, ref_softplus_2, -40, 20, 3},
    {"mish", make_mish, ref_mish, -80, 40, 5},
    {"hardswish", make_hardswish, ref_hardswish, -2.9, 8, 3},
    {"sqrt", make_sqrt, sqrt, 0, 1e10, 0.5001},
    {"abs", make_abs, fabs, -9, 9, 0},
    {"relu", make_relu, ref_relu, -9, 9, 0},
    {"bf16", make_bf16, eval_round_bf16, -300, 300, 0},
};

static const struct {
    const char *name;
    Make *make;
} others[] = {
    {"to_int", make_to_int},   {"from_int", make_from_int}, {"max", make_max},
    {"min", make_min},         {"pow", make_pow},           {"less", make_less},
    {"compare", make_compare}, {"mul_high", make_mul_high}, {"mul_low", make_mul_low},
    {"hsum", make_hsum},       {"hmax", make_hmax},
};
enum { FUNCTIONS = sizeof functions / sizeof *functions, OTHERS = sizeof others / sizeof *others };

/* --- building --- */

static void emit(Jit *j, const char *symbol, Make *make)
{
    const JitTypes *t = jit_types(j);
    jit_kernel_begin(j, symbol);
    JitValue a = jit_buf(j, 0, t->p_f32), b = jit_buf(j, 1, t->p_f32),
             out = jit_buf(j, 2, t->p_f32);
    JitLoop l = jit_for(j, jit_task_begin(j), jit_task_end(j), jit_lanes(j), "i");
    JitValue i = jit_index(&l), x = jit_vload(j, a, i), y = jit_vload(j, b, i);
    jit_vstore(j, out, i, jit_tmp(j, make(j, x, y)));
    jit_end_for(j, &l);
    jit_kernel_end(j);
}

/* out[0..n) = a[0..n) and out + 64 = all lanes of the partial vector, for n = end - begin. */
static void emit_partial(Jit *j)
{
    const JitTypes *t = jit_types(j);
    jit_kernel_begin(j, "partial");
    JitValue n = jit_tmp(j, jit_sub(j, jit_task_end(j), jit_task_begin(j)));
    JitValue zero = jit_i64(j, 0), out = jit_buf(j, 2, t->p_f32);
    JitValue v = jit_vload_partial(j, jit_buf(j, 0, t->p_f32), zero, n, 7);
    jit_vstore_partial(j, out, zero, n, v);
    jit_vstore(j, out, jit_i64(j, 64), v);
    jit_kernel_end(j);
}

/* b[0..n) = a[0..n) as bf16, in whole vectors, one partial one, or element by element (n = end -
 * begin, begin says which); then back to out. */
static void emit_memory(Jit *j)
{
    const JitTypes *t = jit_types(j);
    jit_kernel_begin(j, "memory");
    JitValue a = jit_buf(j, 0, t->p_f32), b = jit_buf(j, 1, t->p_bf16),
             out = jit_buf(j, 2, t->p_f32);
    JitValue way = jit_task_begin(j), zero = jit_i64(j, 0);
    JitValue n = jit_tmp(j, jit_sub(j, jit_task_end(j), way));
    JitIf whole = jit_if(j, jit_compare(j, JIT_EQ, way, zero));
    JitLoop l = jit_for(j, zero, n, jit_lanes(j), "i");
    jit_vstore(j, b, jit_index(&l), jit_vload(j, a, jit_index(&l)));
    jit_vstore(j, out, jit_index(&l), jit_vload(j, b, jit_index(&l)));
    jit_end_for(j, &l);
    jit_else(j, &whole);
    JitIf part = jit_if(j, jit_compare(j, JIT_EQ, way, jit_i64(j, 1)));
    jit_vstore_partial(j, b, zero, n, jit_vload(j, a, zero));
    jit_vstore(j, out, zero, jit_vload_partial(j, b, zero, n, 7));
    jit_else(j, &part);
    l = jit_for(j, zero, n, 1, "i");
    jit_store(j, b, jit_index(&l), jit_load(j, a, jit_index(&l)));
    jit_store(j, out, jit_index(&l), jit_load(j, b, jit_index(&l)));
    jit_end_for(j, &l);
    jit_end_if(j, &part);
    jit_end_if(j, &whole);
    jit_kernel_end(j);
}

static void build(const Target *target, const char *path)
{
    const char *error = "";
    char symbol[16];
    Jit *j = jit_new(target, false);
    for (int i = 0; i < FUNCTIONS; i++) {
        snprintf(symbol, sizeof symbol, "f%d", i);
        emit(j, symbol, functions[i].make);
    }
    for (int i = 0; i < OTHERS; i++)
        emit(j, others[i].name, others[i].make);
    emit_partial(j);
    emit_memory(j);
    bool ok = jit_write_shared(j, path, NULL, 0, &error);
    if (!ok)
        fprintf(stderr, "%s\n", error);
    _exit(!ok);
}

static void *compile(const Target *target)
{
    char path[] = "/tmp/scrimp-math-XXXXXX";
    int fd = mkstemp(path), status = 1;
    if (fd < 0)
        return NULL;
    close(fd);
    pid_t child = fork();
    if (child == 0)
        build(target, path);
    waitpid(child, &status, 0);
    void *handle = status == 0 ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    unlink(path);
    return handle;
}

static Kernel *find(void *handle, const char *symbol)
{
    Kernel *k = NULL;
    void *found = dlsym(handle, symbol);
    memcpy(&k, &found, sizeof found);
    return k;
}

/* --- checking --- */

static float a[POINTS], b[POINTS], out[POINTS];

static void run(void *handle, const char *symbol, int64_t n)
{
    char *buf[] = {(char *)a, (char *)b, (char *)out};
    find(handle, symbol)(buf, 0, n, NULL);
}

static double error_in_ulp(double got, double want)
{
    if (isnan(want) || isnan(got))
        return isnan(want) && isnan(got) ? 0 : INFINITY;
    if (isinf((float)want) || isinf(got))
        return (double)(float)want == got ? 0 : INFINITY;
    double unit = fabs(want) < 0x1p-126 ? 0x1p-149 : ldexp(1, ilogb(want) - 23);
    return fabs(got - want) / unit;
}

static void check_function(const Target *t, void *handle, int index)
{
    const Function *f = &functions[index];
    char symbol[16];
    double worst = 0, at = 0;
    snprintf(symbol, sizeof symbol, "f%d", index);
    for (int i = 0; i < POINTS; i++)
        a[i] = (float)(f->low + (f->high - f->low) * i / (POINTS - 1));
    run(handle, symbol, POINTS);
    for (int i = 0; i < POINTS; i++) {
        double e = error_in_ulp((double)out[i], f->reference((double)a[i]));
        if (e > worst) {
            worst = e;
            at = (double)a[i];
        }
    }
    CHECK_MSG(worst <= f->ulp, "%s %s: %g ulp at %g", t->name, f->name, worst, at);
}

static const float specials[SPECIALS] = {0.0f,  -0.0f,  INFINITY, -INFINITY, NAN,   1e-40f, -1e-40f,
                                         3e38f, -3e38f, 1e-20f,   -1e-20f,   1.0f,  -1.0f,  0.5f,
                                         -0.5f, 2.0f,   -2.0f,    3.0f,      -3.0f, 100.0f, -100.0f,
                                         1e30f, -1e30f, 16.0f,    7.25f,     -7.75f};

static bool same_bf16(float got, float from)
{
    double want = eval_round_bf16((double)from);
    return isnan(from) ? isnan(got) : (double)got == want && signbit(got) == signbit(from);
}

/* way: 0 vectors, 1 a partial vector, 2 elements. */
static void check_memory(const Target *t, void *handle, int way, int n, int lanes)
{
    char *buf[] = {(char *)a, (char *)b, (char *)out};
    find(handle, "memory")(buf, way, way + n, NULL);
    for (int i = 0; i < (way == 1 ? lanes : n); i++)
        CHECK_MSG(i < n ? same_bf16(out[i], a[i]) : out[i] == 7, "%s bf16(%g) = %g, way %d",
                  t->name, (double)a[i], (double)out[i], way);
}

/* Ties, what rounds up to the next exponent, subnormal numbers, NaNs whose bits are in the lower
 * half alone. */
static void check_bf16(const Target *t, void *handle)
{
    static const uint32_t words[16] = {0x3f808000, 0x3f818000, 0x3f7fffff, 0x00008000,
                                       0x00018000, 0x00007fff, 0x7f7f8000, 0x7f800001,
                                       0xff800001, 0x7fffffff, 0x80000000, 0xff7f7fff,
                                       0x007f8000, 0x3f808001, 0xbf807fff, 0x80008001};
    memcpy(a, words, sizeof words);
    check_memory(t, handle, 0, 16, t->vector_floats);
    check_memory(t, handle, 2, 16, t->vector_floats);
    for (int n = 1; n <= t->vector_floats; n++)
        check_memory(t, handle, 1, n, t->vector_floats);
}

/* gelu and silu of -inf are NaN (-inf * 0), as in PyTorch; the references agree. */
static void check_specials(const Target *t, void *handle, int index)
{
    const Function *f = &functions[index];
    char symbol[16];
    snprintf(symbol, sizeof symbol, "f%d", index);
    memcpy(a, specials, sizeof specials);
    run(handle, symbol, SPECIALS);
    for (int i = 0; i < SPECIALS; i++) {
        double want = f->reference((double)specials[i]), e = error_in_ulp((double)out[i], want);
        bool tiny = fabs(want) < 1e-35 && fabs((double)out[i]) < 1e-35; /* may be flushed */
        CHECK_MSG(e <= f->ulp || tiny, "%s %s(%g) = %g, expected %g", t->name, f->name,
                  (double)specials[i], (double)out[i], want);
        bool odd = f->reference == tanh || f->reference == ref_sin || f->reference == sqrt ||
                   f->reference == erf;
        if (odd && specials[i] == 0)
            CHECK_MSG(signbit(out[i]) == signbit(specials[i]), "%s %s(%g): sign of zero", t->name,
                      f->name, (double)specials[i]);
    }
}

/* Every special against every other. */
static void fill_pairs(void)
{
    for (int i = 0; i < SPECIALS * SPECIALS; i++) {
        a[i] = specials[i / SPECIALS];
        b[i] = specials[i % SPECIALS];
    }
}

static double max_nan(double x, double y)
{
    return isnan(x) || isnan(y) ? (double)NAN : x > y ? x : y;
}

static int32_t word(float f)
{
    int32_t w;
    memcpy(&w, &f, sizeof w);
    return w;
}

static int compare_bits(double x, double y)
{
    return (x == y) | (x != y) << 1 | (x < y) << 2 | (x <= y) << 3 | (x > y) << 4 | (x >= y) << 5;
}

static void check_pairs(const Target *t, void *handle)
{
    const int n = SPECIALS * SPECIALS;
    fill_pairs();
    run(handle, "max", n);
    for (int i = 0; i < n; i++)
        CHECK_MSG(error_in_ulp((double)out[i], max_nan((double)a[i], (double)b[i])) == 0,
                  "%s max(%g, %g) = %g", t->name, (double)a[i], (double)b[i], (double)out[i]);
    run(handle, "min", n);
    for (int i = 0; i < n; i++)
        CHECK_MSG(error_in_ulp((double)out[i], -max_nan(-(double)a[i], -(double)b[i])) == 0,
                  "%s min(%g, %g) = %g", t->name, (double)a[i], (double)b[i], (double)out[i]);
    run(handle, "less", n);
    for (int i = 0; i < n; i++)
        CHECK(out[i] == (a[i] < b[i] ? 1.0f : 0.0f));
    run(handle, "compare", n);
    for (int i = 0; i < n; i++) {
        int want = compare_bits((double)a[i], (double)b[i]);
        want |= compare_bits(word(a[i]), word(b[i])) << 6;
        CHECK_MSG(word(out[i]) == want, "%s compare(%g, %g): %x, expected %x", t->name,
                  (double)a[i], (double)b[i], (unsigned)word(out[i]), (unsigned)want);
    }
    run(handle, "mul_high", n);
    for (int i = 0; i < n; i++) {
        uint64_t p = (uint64_t)(uint32_t)word(a[i]) * (uint32_t)word(b[i]);
        CHECK((uint32_t)word(out[i]) == (uint32_t)(p >> 32));
    }
    run(handle, "mul_low", n);
    for (int i = 0; i < n; i++)
        CHECK((uint32_t)word(out[i]) == (uint32_t)word(a[i]) * (uint32_t)word(b[i]));
}

/* Relative error grows with |b log a|. */
static void check_pow(const Target *t, void *handle)
{
    for (int i = 0; i < POINTS; i++) {
        a[i] = (float)(0.01 + 10.0 * (i % 181) / 181);
        b[i] = (float)(-12 + 24.0 * (i % 331) / 331);
    }
    run(handle, "pow", POINTS);
    for (int i = 0; i < POINTS; i++) {
        double want = pow((double)a[i], (double)b[i]);
        double allowed = 4 + 2 * fabs((double)b[i] * log((double)a[i]));
        CHECK_MSG(error_in_ulp((double)out[i], want) <= allowed, "%s pow(%g, %g) = %g", t->name,
                  (double)a[i], (double)b[i], (double)out[i]);
    }
    fill_pairs();
    run(handle, "pow", SPECIALS * SPECIALS);
    for (int i = 0; i < SPECIALS * SPECIALS; i++) {
        double want = pow((double)a[i], (double)b[i]), x = fabs((double)a[i]);
        if (x < 0.1 || x > 10 || isinf(b[i]) || fabs(want) < 1e-35)
            continue;
        CHECK_MSG(error_in_ulp((double)out[i], want) < 200, "%s pow(%g, %g) = %g, expected %g",
                  t->name, (double)a[i], (double)b[i], (double)out[i], want);
    }
}

static void check_conversions(const Target *t, void *handle)
{
    for (int i = 0; i < POINTS; i++)
        a[i] = (float)((i - POINTS / 2) * 131071.37);
    a[0] = 0.99f, a[1] = -0.99f, a[2] = -0.0f, a[3] = 16777217.0f, a[4] = 1e-30f, a[5] = 8388609.5f;
    run(handle, "to_int", POINTS);
    for (int i = 0; i < POINTS; i++)
        CHECK_MSG(fabsf(a[i]) > 2.1e9f || word(out[i]) == (int32_t)a[i], "%s int(%g) = %d", t->name,
                  (double)a[i], word(out[i]));
    for (int i = 0; i < POINTS; i++) {
        int32_t w = i < 4 ? INT32_MIN + i : i < 8 ? INT32_MAX - i : (i - POINTS / 2) * 65521;
        memcpy(&a[i], &w, sizeof w);
    }
    run(handle, "from_int", POINTS);
    for (int i = 0; i < POINTS; i++)
        CHECK_MSG(out[i] == (float)word(a[i]), "%s float(%d) = %g", t->name, word(a[i]),
                  (double)out[i]);
}

static void check_lanes(const Target *t, void *handle)
{
    int lanes = t->vector_floats;
    for (int i = 0; i < lanes; i++)
        a[i] = (float)(1 << i);
    run(handle, "hsum", lanes);
    CHECK(out[0] == (float)((1 << lanes) - 1));
    for (int top = 0; top < lanes; top++) {
        for (int i = 0; i < lanes; i++)
            a[i] = i == top ? 5.0f : -(float)i;
        run(handle, "hmax", lanes);
        CHECK(out[lanes - 1] == 5.0f);
    }
    for (int n = 1; n <= lanes; n++) {
        for (int i = 0; i < 128; i++)
            out[i] = 99.0f;
        run(handle, "partial", n);
        for (int i = 0; i < lanes; i++) {
            CHECK(out[i] == (i < n ? a[i] : 99.0f));
            CHECK(out[64 + i] == (i < n ? a[i] : 7.0f));
        }
    }
}

static void test_target(const Target *t)
{
    void *handle = compile(t);
    CHECK_MSG(handle, "%s: does not compile", t->name);
    if (!handle)
        return;
    for (int i = 0; i < FUNCTIONS; i++) {
        check_function(t, handle, i);
        check_specials(t, handle, i);
    }
    check_pairs(t, handle);
    check_pow(t, handle);
    check_conversions(t, handle);
    check_lanes(t, handle);
    check_bf16(t, handle);
    dlclose(handle);
}

int main(void)
{
    for (const char *const *name = target_names(); *name; name++)
        if (target_runs_here(target_find(*name)))
            test_target(target_find(*name));
    return test_result();
}
