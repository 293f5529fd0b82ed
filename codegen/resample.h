/* What pooling.c leaves to resample.c. */
#ifndef SCRIMP_CODEGEN_RESAMPLE_H
#define SCRIMP_CODEGEN_RESAMPLE_H

#include "codegen/kernel.h"

/* avgpool or avgpool_grad whose windows lie side by side and cover the image: as adaptive pooling.
 */
void lower_even_average(Lowering *l, const Node *n);

#endif
