// PoCL, the OpenCL implementation for processors that bench_device measures against. Thread safety:
// none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "softgpu/exec/launch.h"

namespace softgpu::testing {

class Pocl {
 public:
  // With the kernels of an OpenCL C file, on `threads` threads. Null, and why, where it isn't
  // installed.
  static std::unique_ptr<Pocl> Open(const std::string& file, int threads, std::string* why);
  virtual ~Pocl() = default;

  // Kernels will use this memory in its place.
  virtual void Share(uint64_t address, size_t bytes) = 0;
  // Writes of the host to shared memory are seen by kernels from here on, or kernels' by the host.
  virtual void Publish() = 0;

  // An argument: a value of 4 bytes, or the address of shared memory.
  struct Argument {
    Argument(int v) : value(static_cast<uint32_t>(v)) {}
    Argument(float v);
    Argument(uint64_t a) : address(a) {}
    uint32_t value = 0;
    uint64_t address = 0;
  };
  // What runs the kernel once, to its end. The function may be used as long as this object is.
  virtual std::function<void()> Prepare(const std::string& kernel, Dim3 grid, Dim3 block,
                                        const std::vector<Argument>& arguments) = 0;
};

}  // namespace softgpu::testing
