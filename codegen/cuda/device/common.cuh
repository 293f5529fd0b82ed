/* What every kernel starts with.  The text is CUDA C, and C with the few macros of this file given
 * by whoever includes something before it: kernels are tested without a device. */
#ifndef KERNEL
#define KERNEL(name, threads) extern "C" __global__ void __launch_bounds__(threads) name(const Args a)
/* So many blocks are enough for a multiprocessor.  Where nothing is said, ptxas may spill some
 * registers for the sake of one block more. */
#define KERNEL_BLOCKS(name, threads, blocks)                                                       \
    extern "C" __global__ void __launch_bounds__(threads, blocks) name(const Args a)
/* As many blocks from sm_100 on; nothing is said before. */
#define SINCE_100(blocks) (__CUDA_ARCH__ >= 1000 ? (blocks) : 0)
#define DEVICE                static __device__ __forceinline__
#define SHARED                __shared__
#define TABLE                 static __device__ const
#define ALIGNED(bytes)        __align__(bytes)
#define UNROLL                _Pragma("unroll")
#endif

typedef long long i64;
typedef unsigned int u32;
typedef unsigned char u8;

/* Addresses in the arena, and numbers. */
typedef struct Args {
    i64 word[N_ARGS];
} Args;

#define BUF(type, k) ((type *)a.word[k])
#define INT(k)       ((int)a.word[k])
#define FLOAT(k)     from_bits((int)a.word[k])

DEVICE float from_bits(int bits)
{
    union {
        int i;
        float f;
    } u;
    u.i = bits;
    return u.f;
}

DEVICE int to_bits(float x)
{
    union {
        int i;
        float f;
    } u;
    u.f = x;
    return u.i;
}

/* The first unit of part `part` of `parts` nearly equal ones of 0..units-1. */
DEVICE i64 part_start(i64 part, i64 units, i64 parts)
{
    return part * units / parts;
}
