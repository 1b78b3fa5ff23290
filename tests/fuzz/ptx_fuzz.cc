// PTX text: any text parses into a module or is refused with a line in the log.
#include <cassert>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "softgpu/ptx/module.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string log;
  const std::shared_ptr<const softgpu::PtxModule> module =
      softgpu::PtxModule::Parse(std::string_view(reinterpret_cast<const char*>(data), size), &log);
  assert(module != nullptr || !log.empty());
  return 0;
}
