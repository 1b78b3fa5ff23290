// The instruction table in words: docs/ptx.md. Thread safety: a function of constant data.
#pragma once

#include <string>

namespace softgpu::ptx {

// The page: every instruction of the ISA with its forms, or the reason why it is refused.
std::string PtxMarkdown();

}  // namespace softgpu::ptx
