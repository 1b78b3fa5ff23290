#include "softgpu/driver/linker.h"

#include <memory>
#include <utility>

#include "softgpu/driver/device_runtime.h"
#include "softgpu/driver/error_log.h"
#include "softgpu/driver/fatbin.h"
#include "softgpu/driver/image.h"

namespace softgpu {

CUresult Linker::Refuse(ptx::Link::Outcome outcome) {
  CUresult code = CUDA_SUCCESS;
  if (outcome == ptx::Link::Outcome::kBadText) code = CUDA_ERROR_INVALID_PTX;
  if (outcome == ptx::Link::Outcome::kConflict) code = CUDA_ERROR_INVALID_SOURCE;
  if (outcome == ptx::Link::Outcome::kUndefined) code = CUDA_ERROR_NO_BINARY_FOR_GPU;
  if (code == CUDA_SUCCESS) return code;
  const bool of_linking = outcome != ptx::Link::Outcome::kBadText;
  options_.WriteErrorLog((of_linking ? "error   : " : "") + link_.error() + "\n");
  return Fail(code, link_.error());
}

CUresult Linker::AddText(std::string ptx, std::string_view name) {
  if (!ptx.ends_with('\n')) ptx += '\n';
  return Refuse(link_.Add(std::move(ptx), std::string(name)));
}

CUresult Linker::Add(CUjitInputType type, std::string_view data, std::string_view name) {
  if (type != CU_JIT_INPUT_PTX && type != CU_JIT_INPUT_FATBINARY && type != CU_JIT_INPUT_OBJECT &&
      type != CU_JIT_INPUT_CUBIN && type != CU_JIT_INPUT_LIBRARY) {
    return Fail(CUDA_ERROR_NOT_SUPPORTED, "only PTX can be linked");
  }
  if (IsDeviceRuntimeUntrusted(data)) {
    device_runtime_ = true;
    return CUDA_SUCCESS;
  }
  std::string ptx;
  const CUresult extracted = ExtractPtxUntrusted(data, options_, &ptx);
  return extracted == CUDA_SUCCESS ? AddText(std::move(ptx), name) : extracted;
}

CUresult Linker::Complete(void** image, size_t* bytes) {
  if (link_.empty()) return Fail(CUDA_ERROR_INVALID_VALUE, "nothing was added to link");
  if (std::exchange(device_runtime_, false)) {
    const CUresult added = AddText(kDeviceRuntimePtx, "libcudadevrt.a");
    if (added != CUDA_SUCCESS) return added;
  }
  std::string ptx;
  const CUresult joined = Refuse(link_.Finish(&ptx));
  if (joined != CUDA_SUCCESS) return joined;
  std::shared_ptr<const PtxModule> module;
  const CUresult parsed = ParsePtx(ptx, options_, &module);
  if (parsed != CUDA_SUCCESS) return parsed;
  image_ = MakeFatbin(ptx, static_cast<uint32_t>(module->target()));
  *image = image_.data();
  if (bytes != nullptr) *bytes = image_.size();
  return CUDA_SUCCESS;
}

}  // namespace softgpu
