// Errors: how a driver result becomes a runtime error, and what each error is called.
//
// Every result of the driver passes through ToError exactly once (runtime/driver.h calls it), so no
// other file compares numbers of the two enumerations.
// Thread safety: all functions are pure.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

namespace runtime {

// The runtime error of a driver result. Since CUDA 10.1 both enumerations use the same numbers
// where they mean the same; a result that the runtime has no name for becomes cudaErrorUnknown.
cudaError_t ToError(CUresult result);

// True for errors after which the context is unusable for the rest of the process.
bool IsSticky(cudaError_t error);

// The enumerator's name and a short description; never null.
const char* ErrorName(cudaError_t error);
const char* ErrorText(cudaError_t error);

}  // namespace runtime
