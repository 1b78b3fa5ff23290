// What the cuBLAS and cublasLt facades share: sending a library's call, on behalf of a handle.
// Thread safety: any thread; one handle belongs to one thread at a time.
#pragma once

#include "ipc/codec_client.h"
#include "shim/blas_state.h"
#include "shim/state.h"

namespace shim {

// The calling thread's current context; the primary one of device 0 becomes current when there is
// none, as with the vendor's libraries, which sit on the runtime. Initialises the driver.
CUresult BlasContext(Context** context, uint64_t* value);

// Sends a cuBLAS call as its row says. The status is the library's.
uint32_t ForwardCublas(ipc::Op op, ipc::Values values);
// The same for cublasLt; a cuBLAS handle may stand for a cublasLt handle.
uint32_t ForwardCublasLt(ipc::Op op, ipc::Values values);

cublasStatus_t StatusOf(CUresult result);

// The texts of cublasGetStatusName and cublasGetStatusString.
const char* BlasStatusName(cublasStatus_t status);
const char* BlasStatusText(cublasStatus_t status);

}  // namespace shim
