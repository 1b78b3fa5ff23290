// From the bytes that a program calls a module to a parsed PTX module.
//
// Accepts PTX text, a fat binary (bare or behind its wrapper) and an ELF object; the last, and a
// fat binary without PTX, are refused with CUDA_ERROR_NO_BINARY_FOR_GPU and the names of their
// kernels: machine code is never decoded. Equal texts are parsed once as long as somebody uses the
// result. Thread safety: functions without visible state.
#pragma once

#include <cuda.h>

#include <memory>
#include <string>
#include <string_view>

#include "softgpu/driver/jit_options.h"
#include "softgpu/ptx/module.h"

namespace softgpu {

// The PTX text inside `image`. A null-terminated text, or a container that knows its own size.
// Machine code alone is said in the error log of `options`; without one, once on stderr.
CUresult ExtractPtxUntrusted(const void* image, const JitOptions& options, std::string* ptx);
CUresult ExtractPtxUntrusted(std::string_view image, const JitOptions& options, std::string* ptx);

// Parses, and writes the JIT's logs where `options` says.
CUresult ParsePtx(std::string_view ptx, const JitOptions& options,
                  std::shared_ptr<const PtxModule>* module);

CUresult LoadImage(const void* image, const JitOptions& options,
                   std::shared_ptr<const PtxModule>* module);
CUresult LoadImageFile(const char* path, const JitOptions& options,
                       std::shared_ptr<const PtxModule>* module);

}  // namespace softgpu
