// cuLink*: joins PTX texts into one, handed out in a fat binary that module loading accepts.
//
// Thread safety: none; a link state belongs to one thread at a time.
#pragma once

#include <cuda.h>

#include <string>
#include <string_view>

#include "softgpu/driver/jit_options.h"

namespace softgpu {

class Linker {
 public:
  // The option arrays of cuLinkCreate must outlive the link, as the manual says: logs go there.
  explicit Linker(const JitOptions& options) : options_(options) {}

  CUlinkState handle() { return reinterpret_cast<CUlinkState>(this); }

  CUresult Add(CUjitInputType type, std::string_view data);
  // The result lives as long as the linker.
  CUresult Complete(void** image, size_t* bytes);

 private:
  const JitOptions options_;
  std::string ptx_;              // all inputs, one module header
  bool device_runtime_ = false;  // its functions are still to be added
  std::string image_;
};

}  // namespace softgpu
