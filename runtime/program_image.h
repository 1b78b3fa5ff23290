// The module of a program's device code, from the wrapper that nvcc's output registers.
//
// A program of whole files registers one wrapper of version 1 for each: its container is loaded as
// it is. Separable compilation (nvcc -rdc=true) registers one of version 2 for all files that were
// linked together, whose container holds what nvlink made: machine code, or nothing where the files
// hold PTX alone. Beside it stands a null-terminated array of each file's own container (the
// toolkit's fatbinary_section.h and crt/link.stub). What the device can't run from the first, the
// driver's linker makes of the others.
//
// Thread safety: functions without state.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <fatbinary_section.h>

namespace runtime {

// REQUIRES: UseContext() on this thread.
cudaError_t LoadProgramImage(const __fatBinC_Wrapper_t& wrapper, CUmodule* module);

}  // namespace runtime
