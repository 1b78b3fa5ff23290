// Where a compiler plugs into the interpreter: it may offer other code for a launch than the
// translated one. Thread safety: SetCompiler before the first launch; a compiler is called from any
// thread.
#pragma once

#include <memory>

#include "softgpu/exec/code.h"
#include "softgpu/exec/launch.h"

namespace softgpu::exec {

class Compiler {
 public:
  virtual ~Compiler() = default;
  // What to run `launch` with: `code`, or its compiled twin.
  virtual std::shared_ptr<const KernelCode> Choose(const std::shared_ptr<const KernelCode>& code,
                                                   const Launch& launch) = 0;
  // `launch` ran `code` as translated and took so long.
  virtual void Ran(const std::shared_ptr<const KernelCode>& code, const Launch& launch,
                   uint64_t nanoseconds) = 0;
};

// Null: interpret everything. Not owned.
void SetCompiler(Compiler* compiler);

}  // namespace softgpu::exec
