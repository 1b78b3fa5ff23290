// A kernel of PTX text, for tests of what is found out about it. Thread safety: none.
#pragma once

#include <memory>
#include <stdexcept>
#include <string>

#include "replay/kernel_access.h"
#include "softgpu/ptx/ir.h"

namespace replay::testing {

// `body` is that of a kernel `k` with these parameters (".param .u64 p, .param .u32 n"); `before`
// is what stands in front of it. Registers: %p<4> predicates, %r<32> b32, %rd<32> b64, %f<8> f32.
class ParsedKernel {
 public:
  ParsedKernel(const std::string& parameters, const std::string& body,
               const std::string& before = "")
      : ParsedKernel(".version 8.3\n.target sm_80\n.address_size 64\n" + before +
                     "\n.visible .entry k(" + parameters + ")\n{\n" +
                     ".reg .pred %p<4>; .reg .b32 %r<32>; .reg .b64 %rd<32>; .reg .f32 %f<8>;\n" +
                     body + "\nret;\n}\n") {}

  explicit ParsedKernel(const std::string& module) {
    std::string log;
    module_ = softgpu::PtxModule::Parse(module, &log);
    if (module_ == nullptr) throw std::runtime_error(log + "\n" + module);
  }

  const softgpu::PtxModule& module() const { return *module_; }
  const softgpu::ptx::KernelImpl& kernel() const {
    return static_cast<const softgpu::ptx::KernelImpl&>(*module_->kernels().back());
  }

 private:
  std::shared_ptr<const softgpu::PtxModule> module_;
};

}  // namespace replay::testing
