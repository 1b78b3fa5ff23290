// The kernels of a file: PTX text, a fat binary, or a program or library that carries fat binaries.
//
// Machine code is never decoded: an image without PTX is counted and left out. Thread safety: pure
// but for reading the file.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "softgpu/ptx/module.h"

namespace replay {

struct KernelFile {
  std::vector<std::shared_ptr<const softgpu::PtxModule>> modules;
  size_t machine_code = 0;           // images without PTX
  std::vector<std::string> refused;  // texts that do not parse: why
};

// An error when the file can't be read or holds no image at all.
absl::StatusOr<KernelFile> ReadKernelFileUntrusted(const std::string& path);

// The same of a module's image in memory, as a program gives it to the driver. An image of an
// unknown kind counts as machine code.
KernelFile ReadKernelImagesUntrusted(std::span<const std::byte> image);

}  // namespace replay
