/* Element-wise functions with the bits of codegen/jit/jit_functions.c, step by step: the same
 * polynomials, fused multiply-adds where fmaf stands and nowhere else (--fmad=false).  What is
 * exact there by other instructions is exact here, too. */
#define LN2_HIGH 0.693359375f
#define LN2_LOW  (-2.12194440e-4f)
#define MAGIC    12582912.0f /* 1.5 * 2^23: a float plus it holds the nearest whole number in its low bits */
#define MAGIC_BITS 0x4b400000
#define NOT_A_NUMBER from_bits(0x7fc00000)
#define INFINITE     from_bits(0x7f800000)

DEVICE float s_abs(float x)
{
    return from_bits(to_bits(x) & 0x7fffffff);
}

DEVICE float s_max_keep(float a, float b)
{
    return a > b ? a : b;
}

/* The number, if one is NaN; of zeros either. */
DEVICE float s_max_number(float a, float b)
{
#ifdef __CUDACC__
    return fmaxf(a, b); /* one instruction */
#else
    return a > b || b != b ? a : b;
#endif
}

/* x, or a limit that is not 0; NaN stays NaN.  One instruction of a device. */
#ifdef __CUDACC__
#define LIMITED(name, instruction, passes)                                                         \
    DEVICE float name(float x, float limit)                                                        \
    {                                                                                              \
        float r;                                                                                   \
        asm(instruction " %0, %1, %2;" : "=f"(r) : "f"(x), "f"(limit));                            \
        return r;                                                                                  \
    }
#else
#define LIMITED(name, instruction, passes)                                                         \
    DEVICE float name(float x, float limit)                                                        \
    {                                                                                              \
        return limit passes x ? limit : x;                                                         \
    }
#endif
LIMITED(s_at_least, "max.NaN.f32", >)
LIMITED(s_at_most, "min.NaN.f32", <)

/* NaN in either gives NaN. */
DEVICE float s_max(float a, float b)
{
    return a != a ? a : s_max_keep(a, b);
}

DEVICE float s_min(float a, float b)
{
    return a != a ? a : a < b ? a : b;
}

DEVICE float s_relu(float x)
{
    return s_max_keep(0.0f, x);
}

DEVICE float s_sign(float x)
{
    float r = x < 0.0f ? -1.0f : x;
    return x > 0.0f ? 1.0f : r;
}

DEVICE float s_rsqrt(float x)
{
    return 1.0f / sqrtf(x);
}

/* Truncation; what does not fit is the smallest number. */
DEVICE int s_to_int(float x)
{
    return x >= -2147483648.0f && x < 2147483648.0f ? (int)x : -2147483647 - 1;
}

DEVICE int s_clamp_u8(int x)
{
    return x < 0 ? 0 : x > 255 ? 255 : x;
}

DEVICE float s_power_of_two(int n)
{
    return from_bits((int)(((u32)n + 127u) << 23));
}

/* x = whole ln2 + r; the result is e^r - 1. */
DEVICE float s_expm1_reduced(float x, int *whole)
{
    float t = x * 1.44269504088896341f + MAGIC, n = t - MAGIC, r, p;
    *whole = (int)((u32)to_bits(t) - MAGIC_BITS);
    r = fmaf(-n, LN2_LOW, fmaf(-n, LN2_HIGH, x));
    p = 1.9789816018270299e-4f;
    p = fmaf(p, r, 1.3945198890345591e-3f);
    p = fmaf(p, r, 8.3335003501069407e-3f);
    p = fmaf(p, r, 4.1666287768769179e-2f);
    p = fmaf(p, r, 1.6666665845030883e-1f);
    p = fmaf(p, r, 5.0000000696296912e-1f);
    return fmaf(p, r * r, r);
}

/* Below 2^-126 the last product is a denormal number: 0, as on the processor. */
DEVICE float s_exp(float x)
{
    float p;
    int whole, half;
    p = s_expm1_reduced(s_at_most(s_at_least(x, -88.0f), 89.0f), &whole) + 1.0f;
    half = whole >> 1;
    return p * s_power_of_two(half) * s_power_of_two(whole - half);
}

/* s_exp(x) for x that is at most 0, or NaN */
DEVICE float s_exp_below(float x)
{
    int whole;
    const float p = s_expm1_reduced(s_at_least(x, -88.0f), &whole) + 1.0f;
    return p * s_power_of_two(whole);
}

/* e^x - 1 for x <= 0 */
DEVICE float s_expm1_negative(float x)
{
    float q, scale;
    int whole;
    x = 0.0f < x ? 0.0f : x;
    x = -30.0f > x ? -30.0f : x;
    q = s_expm1_reduced(x, &whole);
    scale = s_power_of_two(whole);
    return fmaf(scale, q, scale - 1.0f);
}

/* log(2^exponent (1 + f)) for sqrt(1/2) <= 1+f <= sqrt(2) */
DEVICE float s_log_mantissa(float f, float exponent)
{
    float z = f * f, y, p = 6.7466255442152954e-2f;
    p = fmaf(p, f, -1.1675631588125611e-1f);
    p = fmaf(p, f, 1.1888153171824042e-1f);
    p = fmaf(p, f, -1.2405589838638770e-1f);
    p = fmaf(p, f, 1.4219554017250520e-1f);
    p = fmaf(p, f, -1.6667996047017649e-1f);
    p = fmaf(p, f, 2.0002118586263069e-1f);
    p = fmaf(p, f, -2.5000009589110478e-1f);
    p = fmaf(p, f, 3.3333312604886634e-1f);
    y = p * f * z;
    y = fmaf(-exponent, 2.12194440e-4f, y);
    y = fmaf(-0.5f, z, y);
    return fmaf(exponent, 0.693359375f, f + y);
}

/* log(1 + e) for 0 <= e <= 1 */
DEVICE float s_log1p_fraction(float e)
{
    float u = e + 1.0f, lost = e - (u - 1.0f), sqrt2 = 1.41421356237309505f;
    float m = u > sqrt2 ? u * 0.5f : u, exponent = u > sqrt2 ? 1.0f : 0.0f;
    return s_log_mantissa(m - 1.0f, exponent) + lost / u;
}

DEVICE float s_log(float x)
{
    float scaled = x < 1.17549435e-38f ? x * 8388608.0f : x;
    float shift = x < 1.17549435e-38f ? -23.0f : 0.0f;
    int bits = to_bits(scaled), e = (int)((u32)bits - 0x3f3504f3u) >> 23;
    float f = from_bits((int)((u32)bits - ((u32)e << 23))) - 1.0f;
    float y = s_log_mantissa(f, (float)e + shift);
    y = x < INFINITE ? y : x;
    y = x >= 0.0f ? y : NOT_A_NUMBER;
    return x == 0.0f ? -INFINITE : y;
}

DEVICE float s_sigmoid(float x)
{
    return 1.0f / (s_exp(-x) + 1.0f);
}

DEVICE float s_flip_sign(float x, int sign)
{
    return from_bits(to_bits(x) ^ sign);
}

DEVICE float s_tanh(float x)
{
    float size = s_abs(x), big = 1.0f - 2.0f / (s_exp(size + size) + 1.0f);
    float z = size * size, p = -5.7170416392301337e-3f;
    p = fmaf(p, z, 2.0650584319815536e-2f);
    p = fmaf(p, z, -5.3743497222803891e-2f);
    p = fmaf(p, z, 1.3331491277694356e-1f);
    p = fmaf(p, z, -3.3333283924937059e-1f);
    p = fmaf(p * z, size, size);
    return s_flip_sign(size < 0.625f ? p : big, to_bits(x) & (-2147483647 - 1));
}

/* x = n pi/2 + r, as quarter_turns of jit_functions.c. */
DEVICE float s_quarter_turns(float x, int *quarter)
{
    float t = x * 0.63661977236758134f + MAGIC, n = t - MAGIC, r = x, high, lost, rest;
    r = fmaf(-n, 0x1.92p+0f, r);
    r = fmaf(-n, 0x1.fap-12f, r);
    r = fmaf(-n, 0x1.54p-20f, r);
    high = fmaf(-n, 0x1.1p-30f, r);
    lost = fmaf(-n, 0x1.1p-30f, r - high);
    rest = fmaf(n, 0x1.68p-39f, n * 5.390302858158119e-15f);
    *quarter = to_bits(t);
    return high + (lost - rest);
}

DEVICE float s_sine_of_quarter(float r, int quarter)
{
    float z = r * r, sine = -1.9515218093222282e-4f, c = 2.443308268457726e-5f, cosine;
    sine = fmaf(sine, z, 8.332160291705406e-3f);
    sine = fmaf(sine, z, -1.6666654602273417e-1f);
    sine = fmaf(sine * z, r, r);
    cosine = fmaf(-0.5f, z, 1.0f);
    c = fmaf(c, z, -1.3887315616463013e-3f);
    c = fmaf(c, z, 4.166664567015449e-2f);
    cosine = fmaf(c * z, z, cosine);
    return s_flip_sign(quarter & 1 ? cosine : sine, (int)((u32)(quarter & 2) << 30));
}

#define ANGLE_MAX 102942.0f

DEVICE float s_sin(float x)
{
    float size = s_abs(x), r, y;
    int quarter;
    r = s_quarter_turns(size, &quarter);
    y = s_flip_sign(s_sine_of_quarter(r, quarter), to_bits(x) & (-2147483647 - 1));
    return size < ANGLE_MAX ? y : NOT_A_NUMBER;
}

DEVICE float s_cos(float x)
{
    float size = s_abs(x), r;
    int quarter;
    r = s_quarter_turns(size, &quarter);
    return size < ANGLE_MAX ? s_sine_of_quarter(r, (int)((u32)quarter + 1u)) : NOT_A_NUMBER;
}

/* erfc(t) for t >= 0, with e^(-t^2) */
DEVICE float s_erfc_positive(float t, float exp_minus_square)
{
    float u = 1.0f / fmaf(t, 0.3f, 1.0f), p = -1.2955577909669636e-1f;
    p = fmaf(p, u, 4.8573598362827742e-1f);
    p = fmaf(p, u, -5.1266734367023379e-1f);
    p = fmaf(p, u, 5.4821032455418282e-1f);
    p = fmaf(p, u, -9.5027763962128832e-2f);
    p = fmaf(p, u, 2.1510703348134851e-1f);
    p = fmaf(p, u, 1.4828630532867067e-1f);
    p = fmaf(p, u, 1.7072380631877626e-1f);
    p = fmaf(p, u, 1.6918741378521035e-1f);
    return p * u * exp_minus_square;
}

DEVICE float s_normal_cdf(float x, float *density)
{
    float e = s_exp(x * x * -0.5f), t = s_abs(x) * 0.70710678118654752f;
    float half = s_erfc_positive(t, e) * 0.5f;
    *density = e * 0.39894228040143268f;
    return x < 0.0f ? half : 1.0f - half;
}

DEVICE float s_erf(float x)
{
    float size = s_abs(x), z = size * size, p = -6.7495191233163673e-4f, y;
    p = fmaf(p, z, 5.1143463150214109e-3f);
    p = fmaf(p, z, -2.6834624907792339e-2f);
    p = fmaf(p, z, 1.1283376580531636e-1f);
    p = fmaf(p, z, -3.7612618757201275e-1f);
    p = fmaf(p, z, 1.2837916549659526e-1f);
    y = size < 0.75f ? fmaf(p, size, size) : 1.0f - s_erfc_positive(size, s_exp(-z));
    return s_flip_sign(y, to_bits(x) & (-2147483647 - 1));
}

DEVICE float s_gelu_gate(float x, float *square)
{
    *square = x * x;
    return s_sigmoid(x * fmaf(*square, 0.044715f, 1.0f) * 1.59576912160573071176f);
}

DEVICE float s_gelu_tanh(float x)
{
    float square;
    return x * s_gelu_gate(x, &square);
}

DEVICE float s_gelu(float x)
{
    float density;
    return x * s_normal_cdf(x, &density);
}

/* y' of x * s(u(x)): s + x s (1 - s) u' */
DEVICE float s_gelu_tanh_slope(float x)
{
    float square, s, u;
    x = s_max(s_min(x, 32.0f), -32.0f);
    s = s_gelu_gate(x, &square);
    u = fmaf(square, (float)(6 * 0.79788456080286535588 * 0.044715),
             (float)(2 * 0.79788456080286535588));
    return s + x * s * (1.0f - s) * u;
}

DEVICE float s_gelu_slope(float x)
{
    float density, cdf = s_normal_cdf(x, &density);
    return cdf + x * density;
}

DEVICE float s_silu(float x)
{
    return x * s_sigmoid(x);
}

DEVICE float s_silu_slope(float x)
{
    float s = s_sigmoid(x);
    return s + x * s * (1.0f - s);
}

DEVICE float s_softplus(float z)
{
    return s_relu(z) + s_log1p_fraction(s_exp(-s_abs(z)));
}

/* mish_parts of codegen/cpu/point/point_activations.c */
DEVICE float s_mish_parts(float x, float *v, float *q)
{
    *v = s_exp(-s_abs(x));
    *q = x > 0.0f ? *v * *v : 1.0f;
    return x > 0.0f ? *v * 2.0f + 1.0f : *v * (*v + 2.0f);
}

DEVICE float s_mish(float x)
{
    float v, q, n = s_mish_parts(x, &v, &q);
    return x * (n / (n + (q + q)));
}

DEVICE float s_mish_slope(float x)
{
    float v, q, n = s_mish_parts(x, &v, &q), d = n + (q + q), t = n / d;
    float gate = (x > 0.0f ? 1.0f : v) / (v + 1.0f);
    return t + x * gate * ((q + q) / d * (t + 1.0f));
}

DEVICE float s_hardswish(float x)
{
    return x * (s_min(s_max(x + 3.0f, 0.0f), 6.0f) / 6.0f);
}

DEVICE float s_hardswish_grad(float dy, float x)
{
    float y = x < 3.0f ? dy * (x / 3.0f + 0.5f) : dy;
    return x <= -3.0f ? 0.0f : y;
}

DEVICE float s_pow(float a, float b)
{
    float m = s_exp(b * s_log(s_abs(a))), size = s_abs(b);
    int whole = s_to_int(b), is_whole = (float)whole == b, large = size >= 16777216.0f;
    int odd = !large && is_whole && (whole & 1);
    int defined = is_whole || large || a >= 0.0f;
    m = s_flip_sign(m, odd ? to_bits(a) & (-2147483647 - 1) : 0);
    m = defined ? m : NOT_A_NUMBER;
    m = b != b ? b : m;
    m = a != a ? a : m;
    m = b == 0.0f ? 1.0f : m;
    return a == 1.0f ? 1.0f : m;
}

/* a^k for a whole k > 0, by squaring. */
DEVICE float s_whole_power(float a, int k)
{
    float result = 1.0f;
    int any = 0;
    for (;; a = a * a) {
        if (k & 1) {
            result = any ? result * a : a;
            any = 1;
        }
        k >>= 1;
        if (k == 0)
            return result;
    }
}

/* 1 - a^n by squaring in double. */
DEVICE float s_one_minus_power(double a, int n)
{
    double power = 1, square = a;
    int bit;
    for (bit = 0; bit < 31; bit++) {
        if (n >> bit & 1)
            power = power * square;
        square = square * square;
    }
    return (float)(1 - power);
}
