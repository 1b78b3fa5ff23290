#include "softgpu/driver/linker.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "softgpu/driver/device_runtime.h"
#include "softgpu/driver/error_log.h"
#include "softgpu/driver/fatbin.h"
#include "softgpu/driver/image.h"

namespace softgpu {
namespace {

// A joined text keeps the first input's header: the directives that may appear once are dropped
// from the rest.
std::string WithoutHeader(std::string_view ptx) {
  std::string body;
  while (!ptx.empty()) {
    const size_t end = std::min(ptx.find('\n'), ptx.size() - 1) + 1;
    const std::string_view line = ptx.substr(0, end);
    ptx.remove_prefix(end);
    const size_t first = line.find_first_not_of(" \t\r");
    const std::string_view start = first == std::string_view::npos ? "" : line.substr(first);
    const bool header = start.starts_with(".version") || start.starts_with(".target") ||
                        start.starts_with(".address_size");
    body += header ? std::string_view("\n") : line;
  }
  return body;
}

}  // namespace

CUresult Linker::Add(CUjitInputType type, std::string_view data) {
  if (type != CU_JIT_INPUT_PTX && type != CU_JIT_INPUT_FATBINARY && type != CU_JIT_INPUT_OBJECT &&
      type != CU_JIT_INPUT_CUBIN && type != CU_JIT_INPUT_LIBRARY) {
    return Fail(CUDA_ERROR_NOT_SUPPORTED, "only PTX can be linked");
  }
  if (type == CU_JIT_INPUT_LIBRARY && IsDeviceRuntime(data)) {
    device_runtime_ = true;
    return CUDA_SUCCESS;
  }
  std::string ptx;
  const CUresult extracted = ExtractPtxUntrusted(data, options_, &ptx);
  if (extracted != CUDA_SUCCESS) return extracted;
  ptx_ += ptx_.empty() ? ptx : WithoutHeader(ptx);
  if (!ptx_.ends_with('\n')) ptx_ += '\n';
  return CUDA_SUCCESS;
}

CUresult Linker::Complete(void** image, size_t* bytes) {
  if (ptx_.empty()) return Fail(CUDA_ERROR_INVALID_VALUE, "nothing was added to link");
  if (std::exchange(device_runtime_, false)) ptx_ += kDeviceRuntimePtx;
  std::shared_ptr<const PtxModule> module;
  const CUresult parsed = ParsePtx(ptx_, options_, &module);
  if (parsed != CUDA_SUCCESS) return parsed;
  image_ = MakeFatbin(ptx_, static_cast<uint32_t>(module->target()));
  *image = image_.data();
  if (bytes != nullptr) *bytes = image_.size();
  return CUDA_SUCCESS;
}

}  // namespace softgpu
