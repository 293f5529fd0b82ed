/* Elements of a kernel's buffers that are f32 or bf16: BF16_k says whether buffer k holds bf16.  REAL(k)
 * is the type of its elements in memory, VALUE(k, x) the float that element x stands for, OF(k, v) the
 * element that float v becomes, IS_BF16(k) what functions are told that take a void *. */
#ifndef REAL
#include "bf16.cuh"
#ifndef BF16_0
#define BF16_0 0
#endif
#ifndef BF16_1
#define BF16_1 0
#endif
#ifndef BF16_2
#define BF16_2 0
#endif
#ifndef BF16_3
#define BF16_3 0
#endif
#ifndef BF16_4
#define BF16_4 0
#endif
#ifndef BF16_5
#define BF16_5 0
#endif
#ifndef BF16_6
#define BF16_6 0
#endif
#ifndef BF16_7
#define BF16_7 0
#endif
#ifndef BF16_8
#define BF16_8 0
#endif
#ifndef BF16_9
#define BF16_9 0
#endif
#ifndef BF16_10
#define BF16_10 0
#endif
#define REAL_0         float
#define REAL_1         u16
#define VALUE_0(x)     (x)
#define VALUE_1(x)     from_bf16(x)
#define OF_0(v)        (v)
#define OF_1(v)        to_bf16(v)
#define REAL_JOINED(a, b)   a##b
#define REAL_JOIN(a, b)     REAL_JOINED(a, b)
#define IS_BF16(k)     REAL_JOIN(BF16_, k)
#define REAL(k)        REAL_JOIN(REAL_, REAL_JOIN(BF16_, k))
#define VALUE(k, x)    REAL_JOIN(VALUE_, REAL_JOIN(BF16_, k))(x)
#define OF(k, v)       REAL_JOIN(OF_, REAL_JOIN(BF16_, k))(v)

DEVICE float real_at(const void *p, int bf16, i64 i)
{
    return bf16 ? from_bf16(((const u16 *)p)[i]) : ((const float *)p)[i];
}
#endif
