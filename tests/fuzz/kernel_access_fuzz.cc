// The analysis of kernels: any module that parses is analysed, and any launch of it has its touches
// or a reason.
#include <cassert>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "replay/launch_ranges.h"
#include "softgpu/ptx/ir.h"

namespace {

// Every second page is an allocation, so that some addresses lie in one and others do not.
std::optional<replay::Range> PageOf(uint64_t address) {
  constexpr uint64_t kPage = 4096;
  if (address / kPage % 2 != 0) return std::nullopt;
  return replay::Range{address / kPage * kPage, kPage};
}

void CheckLaunch(const replay::KernelAccess& access, size_t parameter_bytes) {
  std::vector<std::byte> parameters(parameter_bytes);
  for (size_t k = 0; k < parameters.size(); ++k) parameters[k] = std::byte(k * 37);
  const replay::Memory memory = {.allocation = PageOf,
                                 .variable = [](uint32_t v) { return PageOf(uint64_t{v} << 13); }};
  const replay::LaunchTouches out =
      replay::TouchesOf(access, {.blocks = {7, 1, 2}, .threads = {33, 2, 1}}, parameters, memory);
  uint64_t end = 0;
  for (const replay::Touch& touch : out.touches) {
    assert(touch.range.begin >= end && touch.range.bytes != 0);
    end = touch.range.end();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string log;
  const std::shared_ptr<const softgpu::PtxModule> module =
      softgpu::PtxModule::Parse(std::string_view(reinterpret_cast<const char*>(data), size), &log);
  if (module == nullptr) return 0;
  for (const auto& kernel : module->kernels()) {
    const replay::KernelAccess access =
        replay::Analyse(static_cast<const softgpu::ptx::KernelImpl&>(*kernel));
    assert(access.unknown.empty() || access.accesses.empty());
    for (const std::string& text : access.expressions.Texts()) assert(!text.empty());
    CheckLaunch(access, kernel->param_bytes());
  }
  return 0;
}
