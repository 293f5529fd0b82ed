/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "codegen/cuda/library/cudnn_device.h"

#include <stdio.h>

/* One device of each architecture, the largest that is common in data centres.  The heuristics
 * weigh the number of multiprocessors against the size of a problem. */
typedef struct DeviceFacts {
    int arch;
    const char *name;
    int multiprocessors, shared_kib; /* of a block, at most */
    int threads, blocks;             /* of a multiprocessor */
    int clock_mhz, memory_mhz, l2_mib, memory_gib;
} DeviceFacts;

static const DeviceFacts devices[] = {
    {75, "Tesla T4", 40, 64, 1024, 16, 1590, 5001, 4, 16},
    {80, "NVIDIA A100-SXM4-80GB", 108, 163, 2048, 32, 1410, 1593, 40, 80},
    {86, "NVIDIA A40", 84, 99, 1536, 16, 1740, 7251, 6, 48},
    {89, "NVIDIA L40S", 142, 99, 1536, 24, 2520, 9001, 96, 48},
    {90, "NVIDIA H100 80GB HBM3", 132, 227, 2048, 32, 1980, 2619, 50, 80},
    {100, "NVIDIA B200", 148, 227, 2048, 32, 1965, 3996, 126, 180},
    {103, "NVIDIA B300", 148, 227, 2048, 32, 1965, 3996, 126, 270},
    {120, "NVIDIA GeForce RTX 5090", 170, 99, 1536, 24, 2407, 14001, 96, 32},
};

/* Of the same first digits and not newer: what is chosen for that one runs on this one, too. */
static const DeviceFacts *find(int64_t arch)
{
    const DeviceFacts *found = NULL;
    for (size_t i = 0; i < sizeof devices / sizeof *devices; i++)
        if (devices[i].arch / 10 == arch / 10 && devices[i].arch <= arch)
            found = &devices[i];
    return found;
}

bool cudnn_device_json(char *out, size_t size, int64_t arch, int64_t version)
{
    const DeviceFacts *d = find(arch);
    return d &&
           snprintf(
               out, size,
               "{\"cudnn_version\":%lld,\"deviceName\":\"%s\",\"maxGridSize\":[2147483647,65535,"
               "65535],\"maxBlockSize\":[1024,1024,64],\"regsPerBlock\":65536,"
               "\"multiProcessorCount\":%d,\"warpSize\":32,\"maxSharedMemoryPerBlock\":49152,"
               "\"maxSharedMemoryPerBlockOptin\":%d,\"reservedSharedMemoryPerBlock\":%d,"
               "\"maxRegistersPerSM\":65536,\"maxCtasPerSM\":%d,\"maxThreadsPerBlock\":1024,"
               "\"maxThreadsPerSM\":%d,\"pciDeviceId\":0,\"isTccDriver\":0,"
               "\"supportCoopLaunch\":1,\"totalGlobalMem\":%lld,\"smClockRateKHz\":%d,"
               "\"memClockRateKHz\":%d,\"l2CacheSize\":%d,\"cudaDeviceId\":0,\"deviceVer\":%lld,"
               "\"driverVer\":13000}",
               (long long)version, d->name, d->multiprocessors, d->shared_kib * 1024,
               arch >= 80 ? 1024 : 0, d->blocks, d->threads, (long long)d->memory_gib << 30,
               d->clock_mhz * 1000, d->memory_mhz * 1000, d->l2_mib * 1024 * 1024,
               (long long)arch * 10) < (int)size;
}
