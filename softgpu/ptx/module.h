// A module of PTX text, parsed and typed: what the driver half needs to know of it.
//
// Parse() accepts PTX of any target up to the newest ISA as long as every instruction is
// implemented; an unknown one fails with its line in the log, like the driver's JIT
// (CUDA_ERROR_INVALID_PTX). Thread safety: immutable after Parse.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace softgpu {

struct Dim3Triple {
  uint32_t x = 0, y = 0, z = 0;
};

struct ParamInfo {
  uint32_t offset = 0, bytes = 0, align = 0;
};

// A .global or .const variable. `init` may be shorter than `bytes`: the rest is zero.
struct Variable {
  std::string name;
  uint64_t bytes = 0;
  uint32_t align = 1;
  bool constant = false;  // .const
  bool exported = false;  // .visible or .weak: cuModuleGetGlobal finds it
  bool managed = false;
  std::vector<std::byte> init;
  // 8-byte words of `init` that hold an address: variable index, or ~0u and a function's name.
  struct Relocation {
    uint64_t offset;
    uint32_t variable;
    std::string function;
    int64_t addend;
  };
  std::vector<Relocation> relocations;
};

class Kernel {
 public:
  virtual ~Kernel() = default;
  virtual const std::string& name() const = 0;
  virtual const std::vector<ParamInfo>& params() const = 0;
  virtual uint32_t param_bytes() const = 0;
  virtual uint32_t static_shared_bytes() const = 0;
  virtual uint32_t local_bytes() const = 0;       // per thread
  virtual uint32_t register_count() const = 0;    // what CU_FUNC_ATTRIBUTE_NUM_REGS reports
  virtual uint32_t threads_max() const = 0;       // .maxntid product or 1024
  virtual Dim3Triple required_block() const = 0;  // .reqntid or zeros
  virtual bool uses_heap() const = 0;             // calls malloc or free
};

class PtxModule {
 public:
  virtual ~PtxModule() = default;
  // Returns null on failure. `log` always holds what the JIT would print: errors as
  // "ptxas application ptx input, line 12; fatal   : ..." and nothing when all is well.
  static std::shared_ptr<const PtxModule> Parse(std::string_view text, std::string* log);

  virtual int ptx_version() const = 0;  // 83 for ".version 8.3"
  virtual int target() const = 0;       // 80 for ".target sm_80"
  virtual const std::vector<std::unique_ptr<const Kernel>>& kernels()
      const = 0;                                               // .entry, in order
  virtual const std::vector<Variable>& variables() const = 0;  // module scope
};

}  // namespace softgpu
