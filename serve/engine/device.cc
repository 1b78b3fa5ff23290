#include "serve/engine/device.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace serve::engine {

Memory::Memory(Memory&& other) noexcept
    : cuda_(other.cuda_), address_(std::exchange(other.address_, 0)), bytes_(other.bytes_) {}

Memory& Memory::operator=(Memory&& other) noexcept {
  std::swap(cuda_, other.cuda_);
  std::swap(address_, other.address_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

Memory::~Memory() {
  if (address_ != 0) cuda_->cuMemFree_v2(address_);
}

HostMemory::HostMemory(HostMemory&& other) noexcept
    : cuda_(other.cuda_), address_(std::exchange(other.address_, nullptr)) {}

HostMemory::~HostMemory() {
  if (address_ != nullptr) cuda_->cuMemFreeHost(address_);
}

absl::StatusOr<std::unique_ptr<Device>> Device::Open(int number,
                                                     const std::vector<const char*>& modules) {
  const absl::StatusOr<const Cuda*> cuda = LoadCuda();
  if (!cuda.ok()) return cuda.status();
  std::unique_ptr<Device> device(new Device(*cuda, number));
  absl::Status status = device->Start();
  for (const char* const ptx : modules) {
    if (status.ok()) status = device->LoadModule(ptx);
  }
  if (!status.ok()) return status;
  return device;
}

absl::Status Device::Start() {
  int count = 0;
  absl::Status status = cuda_->StatusOf(cuda_->cuDeviceGetCount(&count), "counting devices");
  if (!status.ok()) return status;
  const int ordinal = count == 0 ? 0 : number_ % count;
  const std::string opening = absl::StrCat("opening device ", ordinal);
  status = cuda_->StatusOf(cuda_->cuDeviceGet(&device_, ordinal), opening);
  if (!status.ok()) return status;
  status = cuda_->StatusOf(cuda_->cuDevicePrimaryCtxRetain(&context_, device_), opening);
  if (status.ok()) status = cuda_->StatusOf(cuda_->cuCtxSetCurrent(context_), opening);
  if (status.ok())
    status =
        cuda_->StatusOf(cuda_->cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING), "making a stream");
  if (status.ok()) status = cuda_->StatusOf(cuda_->cublasCreate_v2(&blas_), "starting cuBLAS");
  if (status.ok())
    status = cuda_->StatusOf(cuda_->cublasSetStream_v2(blas_, stream_), "starting cuBLAS");
  return status;
}

absl::Status Device::LoadModule(const char* ptx) {
  CUmodule module = nullptr;
  const absl::Status status =
      cuda_->StatusOf(cuda_->cuModuleLoadData(&module, ptx), "loading kernels");
  if (status.ok()) modules_.push_back(module);
  return status;
}

Device::~Device() {
  if (blas_ != nullptr) cuda_->cublasDestroy_v2(blas_);
  for (const CUmodule module : modules_) cuda_->cuModuleUnload(module);
  if (stream_ != nullptr) cuda_->cuStreamDestroy_v2(stream_);
  if (context_ != nullptr) cuda_->cuDevicePrimaryCtxRelease_v2(device_);
}

absl::StatusOr<Memory> Device::Allocate(size_t bytes, std::string_view what) {
  CUdeviceptr address = 0;
  const absl::Status status =
      cuda_->StatusOf(cuda_->cuMemAlloc_v2(&address, bytes),
                      absl::StrCat("allocating ", bytes, " bytes for ", std::string(what)));
  if (!status.ok()) return status;
  return Memory(cuda_, address, bytes);
}

absl::StatusOr<HostMemory> Device::AllocateHost(size_t bytes, std::string_view what) {
  void* address = nullptr;
  const absl::Status status = cuda_->StatusOf(
      cuda_->cuMemHostAlloc(&address, bytes, 0),
      absl::StrCat("allocating ", bytes, " bytes of the host for ", std::string(what)));
  if (!status.ok()) return status;
  return HostMemory(cuda_, address);
}

absl::StatusOr<size_t> Device::FreeBytes() {
  size_t free = 0;
  size_t total = 0;
  const absl::Status status =
      cuda_->StatusOf(cuda_->cuMemGetInfo_v2(&free, &total), "asking for free memory");
  if (!status.ok()) return status;
  return free;
}

// Refused where the driver can't lock so much memory: copies are slower then, and right.
void Device::Pin(std::span<float> memory) {
  (void)cuda_->cuMemHostRegister_v2(memory.data(), memory.size_bytes(), 0);
}

absl::StatusOr<CUfunction> Device::FindKernel(std::string_view name) {
  const auto known = kernels_.find(std::string(name));
  if (known != kernels_.end()) return known->second;
  const std::string text(name);
  CUfunction function = nullptr;
  CUresult result = CUDA_ERROR_NOT_FOUND;
  for (const CUmodule module : modules_) {
    result = cuda_->cuModuleGetFunction(&function, module, text.c_str());
    if (result != CUDA_ERROR_NOT_FOUND) break;
  }
  const absl::Status status = cuda_->StatusOf(result, "finding the kernel " + text);
  if (!status.ok()) return status;
  kernels_.emplace(text, function);
  return function;
}

}  // namespace serve::engine
