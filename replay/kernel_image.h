// The PTX of one module image: text, or a fat binary's container, as a program gives them to the
// driver.
//
// A device may run an image's machine code instead of the PTX. Both come from one compilation when
// they are of one architecture; otherwise the source may have asked for the architecture, and the
// PTX says nothing about what runs. Thread safety: pure.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "softgpu/ptx/module.h"

namespace replay {

// Null: the image has no PTX, PTX of over 8 MiB or that does not parse, or machine code of another
// architecture.
std::shared_ptr<const softgpu::PtxModule> ReadKernelImageUntrusted(
    std::span<const std::byte> image);

}  // namespace replay
