#ifndef TWO_SUMS
#define TWO_SUMS
typedef struct TwoSums {
    float first, second;
} TwoSums;
#endif
