// What the tests run kernels on: a piece of the device window with memory behind it, and launches
// in one line. Thread safety: none.
#pragma once

#include <atomic>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "softgpu/exec/launch.h"
#include "softgpu/ptx/module.h"

namespace softgpu::testing {

class Machine {
 public:
  explicit Machine(size_t bytes = 64u << 20);
  ~Machine();
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  // Parses a module; a failure fails the test and shows the log.
  void Load(const std::string& ptx);
  // `bytes` of zeroed device memory, aligned to 512.
  uint64_t Allocate(size_t bytes);
  // An address of the window that has no memory.
  uint64_t Unmapped() const { return base_ + bytes_ + 4096; }
  template <class T>
  uint64_t Upload(const std::vector<T>& values) {
    const uint64_t address = Allocate(values.size() * sizeof(T));
    std::memcpy(reinterpret_cast<void*>(address), values.data(), values.size() * sizeof(T));
    return address;
  }
  template <class T>
  std::vector<T> Download(uint64_t address, size_t count) const {
    std::vector<T> values(count);
    std::memcpy(values.data(), reinterpret_cast<const void*>(address), count * sizeof(T));
    return values;
  }
  uint64_t VariableAddress(const std::string& name) const;

  // Parameters are laid out as the kernel says. `kernel` may be a part of the (mangled) name.
  template <class... Args>
  std::optional<Fault> Run(const std::string& kernel, Dim3 grid, Dim3 block, const Args&... args) {
    std::vector<std::vector<std::byte>> values;
    (values.push_back(Bytes(args)), ...);
    return Launch(kernel, grid, block, values);
  }

  uint32_t dynamic_shared = 0;
  bool cooperative = false;
  std::atomic<bool> cancel{false};
  std::string printed;
  bool checked = false;
  DeviceHeap* heap = nullptr;  // of malloc and free in kernels
  uint32_t watchdog_ms = 0;
  std::vector<Finding> findings;  // of checked launches

 private:
  template <class T>
  static std::vector<std::byte> Bytes(const T& value) {
    const std::byte* at = reinterpret_cast<const std::byte*>(&value);
    return std::vector<std::byte>(at, at + sizeof value);
  }
  std::optional<Fault> Launch(const std::string& kernel, Dim3 grid, Dim3 block,
                              const std::vector<std::vector<std::byte>>& values);

  uint64_t base_ = 0;
  size_t bytes_ = 0, used_ = 0;
  std::shared_ptr<const PtxModule> module_;
  std::vector<uint64_t> variables_;
};

// A kernel that reads up to three values per thread, runs `body` on them and stores one result.
// Registers: %a %b %c of `in_type`, %d of `out_type`; %p %q predicates; %r<8> b32, %h<8> b16, %l<8>
// b64.
std::string ElementKernel(const std::string& in_type, const std::string& out_type,
                          const std::string& body);

// Runs ElementKernel over the operands (which have equal lengths).
template <class In, class Out>
std::vector<Out> RunElements(const std::string& in_type, const std::string& out_type,
                             const std::string& body, const std::vector<In>& a,
                             const std::vector<In>& b = {}, const std::vector<In>& c = {}) {
  Machine machine(16u << 20);
  machine.Load(ElementKernel(in_type, out_type, body));
  const uint64_t in_a = machine.Upload(a), in_b = machine.Upload(b.empty() ? a : b);
  const uint64_t in_c = machine.Upload(c.empty() ? a : c);
  const uint64_t out = machine.Allocate(a.size() * sizeof(Out));
  const uint32_t count = static_cast<uint32_t>(a.size());
  const std::optional<Fault> fault =
      machine.Run("element", {(count + 127) / 128}, {128}, in_a, in_b, in_c, out, count);
  if (fault.has_value()) throw std::runtime_error(fault->ToString());
  return machine.Download<Out>(out, a.size());
}

}  // namespace softgpu::testing
