#include "functions/player/emitter.h"

#include <utility>

namespace functions {
namespace {

// The driver's form of packed parameters. Valid as long as the kernel.
struct Packed {
  explicit Packed(Kernel* kernel)
      : bytes(kernel->parameters.size()),
        extra{CU_LAUNCH_PARAM_BUFFER_POINTER, kernel->parameters.data(),
              CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END} {}
  Packed(const Packed&) = delete;
  void** get() { return bytes == 0 ? nullptr : extra; }

  size_t bytes;
  void* extra[5];
};

// `Shaped`: CUlaunchConfig or CUDA_KERNEL_NODE_PARAMS, whose members have these names in common.
template <class Shaped>
void PutShape(const Kernel& kernel, Shaped* shaped) {
  shaped->gridDimX = kernel.grid[0];
  shaped->gridDimY = kernel.grid[1];
  shaped->gridDimZ = kernel.grid[2];
  shaped->blockDimX = kernel.block[0];
  shaped->blockDimY = kernel.block[1];
  shaped->blockDimZ = kernel.block[2];
  shaped->sharedMemBytes = kernel.shared_bytes;
}

}  // namespace

CUresult Emitter::Add(const Kernel& given) {
  Kernel kernel = given;
  Packed packed(&kernel);
  CUlaunchConfig config{};
  PutShape(kernel, &config);
  config.hStream = stream_;
  config.attrs = kernel.attributes.data();
  config.numAttrs = static_cast<unsigned>(kernel.attributes.size());
  CUresult result = driver_.cuLaunchKernelEx(&config, kernel.function, nullptr, packed.get());
  if (result != CUDA_SUCCESS) return result;
  // Everything is captured from one stream, so the stream's next call depends on this node alone.
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  const CUgraphNode* last = nullptr;
  size_t count = 0;
  result =
      driver_.cuStreamGetCaptureInfo_v3(stream_, &status, nullptr, nullptr, &last, nullptr, &count);
  if (result == CUDA_SUCCESS && count == 1) nodes_[kernel.step] = {last[0], std::move(kernel)};
  return result;
}

CUresult Emitter::Add(const Fill& fill) {
  const size_t elements = fill.row_bytes / fill.element_bytes;
  if (fill.element_bytes == 4)
    return driver_.cuMemsetD2D32Async(fill.to, fill.pitch, fill.value, elements, fill.height,
                                      stream_);
  if (fill.element_bytes == 2)
    return driver_.cuMemsetD2D16Async(fill.to, fill.pitch, static_cast<unsigned short>(fill.value),
                                      elements, fill.height, stream_);
  return driver_.cuMemsetD2D8Async(fill.to, fill.pitch, static_cast<unsigned char>(fill.value),
                                   elements, fill.height, stream_);
}

CUresult Emitter::Add(const RowCopy& copy) {
  CUDA_MEMCPY2D box{};
  box.srcMemoryType = box.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  box.srcDevice = copy.from;
  box.srcPitch = copy.from_pitch;
  box.dstDevice = copy.to;
  box.dstPitch = copy.to_pitch;
  box.WidthInBytes = copy.width;
  box.Height = copy.height;
  return driver_.cuMemcpy2DAsync_v2(&box, stream_);
}

Emitter::Node* Emitter::NodeOf(uint32_t step) {
  const std::map<uint32_t, Node>::iterator found = nodes_.find(step);
  return found == nodes_.end() ? nullptr : &found->second;
}

CUresult Emitter::Update(CUgraphExec executable, Node* node) {
  Kernel& kernel = node->kernel;
  Packed packed(&kernel);
  CUDA_KERNEL_NODE_PARAMS parameters{};
  parameters.func = kernel.function;
  PutShape(kernel, &parameters);
  parameters.extra = packed.get();
  return driver_.cuGraphExecKernelNodeSetParams_v2(executable, node->node, &parameters);
}

}  // namespace functions
