/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "runtime/cuda/cudnn_api.h"

#include "runtime/cuda/find.h"

const Cudnn *cudnn_api(RtError *err)
{
    static const char *const files[] = {"libcudnn.so.9", NULL};
#define CUDNN_FUNCTION(name, symbol, parameters) {#symbol, offsetof(Cudnn, name)},
    static const CudaSymbol symbols[] = {CUDNN_FUNCTIONS(CUDNN_FUNCTION)};
#undef CUDNN_FUNCTION
    static const CudaFile file = {
        .name = "cuDNN",
        .files = files,
        .version = "cudnnGetVersion",
        .oldest = CUDNN_OLDEST,
        .way_out = "install cuDNN 9.11 or newer, or add its folder to SCRIMP_CUDA_PATH",
        .symbol = symbols,
        .n_symbols = sizeof symbols / sizeof *symbols};
    static Cudnn table;
    static bool found;
    found = found || cuda_find_file(&file, &table, &table.version, err);
    return found ? &table : NULL;
}
