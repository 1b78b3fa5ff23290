// An engine's device: the primary context, one stream on which all of its work is done in order,
// modules of kernels, cuBLAS, and memory that outlives steps.
//
// Thread safety: the thread that opened the device alone. Ownership: the device outlives its
// memory and its queues.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "serve/engine/cuda_library.h"

namespace serve::engine {

// Memory of the device, freed with the object.
class Memory {
 public:
  Memory() = default;
  Memory(const Cuda* cuda, CUdeviceptr address, size_t bytes)
      : cuda_(cuda), address_(address), bytes_(bytes) {}
  Memory(Memory&& other) noexcept;
  Memory& operator=(Memory&& other) noexcept;
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory();

  CUdeviceptr address() const { return address_; }
  size_t bytes() const { return bytes_; }

 private:
  const Cuda* cuda_ = nullptr;
  CUdeviceptr address_ = 0;
  size_t bytes_ = 0;
};

// Pinned memory of the host, freed with the object. Copies from and to it don't make the host wait.
class HostMemory {
 public:
  HostMemory(const Cuda* cuda, void* address) : cuda_(cuda), address_(address) {}
  HostMemory(HostMemory&& other) noexcept;
  HostMemory& operator=(HostMemory&&) = delete;
  ~HostMemory();

  void* address() const { return address_; }

 private:
  const Cuda* const cuda_;
  void* address_;
};

class Device {
 public:
  // `number`: of the devices that the program sees, around: the third of two is the first again.
  // `modules` are texts of PTX, which live as long as the program.
  static absl::StatusOr<std::unique_ptr<Device>> Open(int number,
                                                      const std::vector<const char*>& modules);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  const Cuda& cuda() const { return *cuda_; }
  CUstream stream() const { return stream_; }
  cublasHandle_t blas() const { return blas_; }

  // `what` it is for: "the weights".
  absl::StatusOr<Memory> Allocate(size_t bytes, std::string_view what);
  absl::StatusOr<HostMemory> AllocateHost(size_t bytes, std::string_view what);
  // Of the device, for everyone on it.
  absl::StatusOr<size_t> FreeBytes();
  absl::StatusOr<CUfunction> FindKernel(std::string_view name);
  // Copies of this memory need no copy on the way from now on, unless the driver refuses it.
  void Pin(std::span<float> memory);

 private:
  Device(const Cuda* cuda, int number) : cuda_(cuda), number_(number) {}
  absl::Status Start();
  absl::Status LoadModule(const char* ptx);

  const Cuda* cuda_;
  const int number_;
  CUdevice device_ = 0;
  CUcontext context_ = nullptr;
  CUstream stream_ = nullptr;
  cublasHandle_t blas_ = nullptr;
  std::vector<CUmodule> modules_;
  absl::flat_hash_map<std::string, CUfunction> kernels_;
};

}  // namespace serve::engine
