// cuLink*: joins PTX texts into one (softgpu/ptx/link.h), handed out in a fat binary that module
// loading accepts.
//
// Thread safety: none; a link state belongs to one thread at a time.
#pragma once

#include <cuda.h>

#include <string>
#include <string_view>

#include "softgpu/driver/jit_options.h"
#include "softgpu/ptx/link.h"

namespace softgpu {

class Linker {
 public:
  // The option arrays of cuLinkCreate must outlive the link, as the manual says: logs go there.
  explicit Linker(const JitOptions& options) : options_(options) {}

  CUlinkState handle() { return reinterpret_cast<CUlinkState>(this); }

  // `name` stands for the input in the error log. A symbol that conflicts with one of an earlier
  // input is CUDA_ERROR_INVALID_SOURCE.
  CUresult Add(CUjitInputType type, std::string_view data, std::string_view name);
  // The result lives as long as the linker. CUDA_ERROR_NO_BINARY_FOR_GPU when a symbol is defined
  // by no input.
  CUresult Complete(void** image, size_t* bytes);

 private:
  CUresult AddText(std::string ptx, std::string_view name);
  CUresult Refuse(ptx::Link::Outcome outcome);

  const JitOptions options_;
  ptx::Link link_;
  bool device_runtime_ = false;  // its functions are still to be added
  std::string image_;
};

}  // namespace softgpu
