// Conversions of what the runtime says about arrays and boxes of memory into the driver's terms,
// and back. Thread safety: all functions are. REQUIRES: UseContext() on this thread where arrays
// are involved.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

namespace runtime {

cudaError_t ToFormat(const cudaChannelFormatDesc& desc, CUarray_format* format, unsigned* channels);

// All zeros for a format that has no channels of its own (planar, block-compressed).
cudaChannelFormatDesc ToFormat(CUarray_format format, unsigned channels);

cudaError_t ToDriver(const cudaMemcpy3DParms& params, CUDA_MEMCPY3D* copy);
cudaError_t FromDriver(const CUDA_MEMCPY3D& copy, cudaMemcpy3DParms* params);

// Bytes of an element of the array: what turns the runtime's x positions into bytes.
cudaError_t ElementBytes(cudaArray_const_t array, size_t* bytes);

}  // namespace runtime
