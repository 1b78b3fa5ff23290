/* What this libcuda.so.1 exports beyond the documented driver interface. Plain C; look the names up
 * with dlsym, so that a program that uses them still runs on another driver. */
#pragma once

#include <cuda.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef void (*SoftgpuPrintHandler)(CUstream stream, const char* text, size_t bytes, void* data);

/* Device printf goes to `handler` instead of this process's stdout, from the thread that ran the
 * kernel and before the stream goes on; `text` isn't terminated. Null: back to stdout. Works before
 * cuInit. Thread safe. */
CUresult softgpuSetPrintHandler(SoftgpuPrintHandler handler, void* data);

/* The first fault of this process: returns its code (CUDA_SUCCESS: none yet), and sets the stream
 * that it stopped and one sentence that names kernel, block, thread and PTX line. The text stays
 * valid. Thread safe. */
CUresult softgpuGetFault(CUstream* stream, const char** text);

/* For a library that does on the host what a device would do, in host functions (cuLaunchHostFunc).
 * softgpuHasMemory: 1 when a kernel could read all of [address, address + bytes).
 * softgpuRaiseFault, from inside such a host function: when it returns, its stream has faulted with
 * `code`, as by a kernel, and `text` says why. CUDA_ERROR_NOT_PERMITTED elsewhere. Thread safe. */
int softgpuHasMemory(CUdeviceptr address, size_t bytes);
CUresult softgpuRaiseFault(CUresult code, const char* text);

/* The stream whose work the calling thread runs now; null: none's. Async-signal-safe. */
CUstream softgpuRunningStream(void);

#ifdef __cplusplus
}
#endif
