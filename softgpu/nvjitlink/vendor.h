// The vendor's nvJitLink behind the software GPU's: it alone can compile LTO-IR.
//
// Thread safety: any thread.
#pragma once

#include <nvJitLink.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace softgpu::nvjitlink {

// An input that holds LTO-IR, as the program named it.
struct LtoInput {
  nvJitLinkInputType type = NVJITLINK_INPUT_LTOIR;
  std::string bytes;
  std::string name;
};

// What the vendor's library makes of the inputs, joined, as PTX. `options` are the program's own.
// None, with a sentence, when it can't or when there is no such library.
std::optional<std::string> CompileLto(const std::vector<LtoInput>& inputs,
                                      const std::vector<std::string>& options, std::string* error);

}  // namespace softgpu::nvjitlink
