// What the driver half of the software GPU asks of the executing half: run one grid.
//
// A kernel belongs to a parsed module (softgpu/ptx/module.h). The driver gives each module variable
// an address, packs parameters as the ABI says, and calls Execute(); executors know no stream and
// no handle. Device, VMM, pinned and registered memory are plain addresses of this process: an
// executor dereferences them after checking `Memory::Contains`. A page without memory inside the
// window raises SIGSEGV, which the executor's handler turns into a Fault (it chains for every other
// address and thread).
#pragma once

#include <cuda.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace softgpu {

struct Dim3 {
  uint32_t x = 1, y = 1, z = 1;
  uint64_t Count() const { return uint64_t{x} * y * z; }
};

// Which addresses outside the window (limits.h, kWindowBase) a kernel may touch, registered host
// memory, and what the program allocated inside. Thread safety: called from executor threads at
// once.
class Memory {
 public:
  virtual ~Memory() = default;
  virtual bool ContainsOutsideWindow(uint64_t address, uint64_t bytes) const = 0;
  // What was allocated around an address of the window; end 0: nothing.
  struct Range {
    uint64_t begin = 0, end = 0;
  };
  virtual Range AllocationAt(uint64_t address) const = 0;
  // ", 96 bytes behind 256 bytes of device memory at 0x...": the allocation nearest to one that is
  // in none; empty when there is none at all.
  virtual std::string Near(uint64_t address) const = 0;
};

// What kernels set by cudaGraphSetConditional: conditions of graphs. Thread safety: called from
// executor threads at once.
class ConditionSetter {
 public:
  virtual ~ConditionSetter() = default;
  virtual bool Set(uint64_t handle, uint32_t value) = 0;  // false: no condition has this handle
};

class Kernel;      // softgpu/ptx/module.h
class PtxModule;   // softgpu/ptx/module.h
class Textures;    // softgpu/exec/texture.h
class DeviceHeap;  // softgpu/exec/device_heap.h

// What the checked mode found. `text` says it in a few lines, the first without indentation.
struct Finding {
  enum class Kind : uint8_t { kRace, kUninitialised, kDivergence, kBounds };
  Kind kind;
  std::string kernel;
  int line = 0, other_line = 0;  // in the PTX text
  std::string text;
};

struct Launch {
  const Kernel* kernel = nullptr;  // its module outlives the call
  Dim3 grid, block;
  uint32_t dynamic_shared_bytes = 0;
  std::span<const std::byte> parameters;  // packed by the kernel's ParamInfo offsets
  std::span<const uint64_t> variables;  // address of each PtxModule::variables() entry, same order
  const Memory* memory = nullptr;
  struct Objects {
    const Textures* textures = nullptr;
    DeviceHeap* heap = nullptr;             // of malloc and free; null: malloc finds no memory
    ConditionSetter* conditions = nullptr;  // null: there are none
  };
  Objects objects;
  const std::atomic<bool>* cancel =
      nullptr;  // set: stop soon, return Fault{CUDA_ERROR_LAUNCH_FAILED}
  std::function<void(std::string_view)> print;  // device printf, whole formatted text; any thread
  // Set: the checked mode (docs/check.md). Called from any thread, once per place in the kernel.
  std::function<void(const Finding&)> report;
  uint64_t grid_id = 0;
  uint32_t watchdog_ms = 0;  // > 0: a grid that runs longer ends with CUDA_ERROR_LAUNCH_TIMEOUT
  uint32_t sm_count = 8;     // what %nsmid reads
  bool cooperative = false;  // every block must be resident: grid sync works
};

// What stopped a kernel, in the words that stderr and the error log show.
struct Fault {
  CUresult code = CUDA_ERROR_LAUNCH_FAILED;
  std::string what;  // "store of 4 bytes to 0x7, which is not mapped"
  std::string kernel;
  Dim3 block{0, 0, 0}, thread{0, 0, 0};
  int line = 0;        // in the PTX text, from 1; 0 when unknown
  std::string source;  // "file:line" of what was compiled to it, when the PTX says so
  uint64_t address = 0;
  std::string ToString() const;
};

// Runs the whole grid on the pool of executor threads and returns when it has ended.
// Bit-deterministic for race-free kernels: kernels that use floating-point atomics run their blocks
// in order. Thread safety: may be called from several threads at once.
std::optional<Fault> Execute(const Launch& launch);

// Fills new device memory, which lies at its own address, with what the checked mode takes for
// uninitialised.
void MarkUninitialised(uint64_t address, uint64_t bytes);

}  // namespace softgpu
