/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "runtime/cuda/cublaslt_api.h"

#include "runtime/cuda/find.h"

const CublasLt *cublaslt_api(RtError *err)
{
    static const char *const files[] = {"libcublasLt.so", "libcublasLt.so.13", "libcublasLt.so.12",
                                        NULL};
#define LT_FUNCTION(name, symbol, parameters) {#symbol, offsetof(CublasLt, name)},
    static const CudaSymbol symbols[] = {LT_FUNCTIONS(LT_FUNCTION)};
#undef LT_FUNCTION
    static const CudaFile file = {
        .name = "cuBLASLt",
        .files = files,
        .version = "cublasLtGetVersion",
        .oldest = LT_OLDEST,
        .way_out = "install the CUDA toolkit, or add its folder of libraries to SCRIMP_CUDA_PATH",
        .symbol = symbols,
        .n_symbols = sizeof symbols / sizeof *symbols};
    static CublasLt table;
    static bool found;
    found = found || cuda_find_file(&file, &table, &table.version, err);
    return found ? &table : NULL;
}
