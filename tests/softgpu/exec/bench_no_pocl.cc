// In place of bench_pocl.cc where there was no OpenCL to build it with.
#include "tests/softgpu/exec/bench_pocl.h"

namespace softgpu::testing {

Pocl::Argument::Argument(float) {}

std::unique_ptr<Pocl> Pocl::Open(const std::string&, int, std::string* why) {
  *why = "this was built without OpenCL (scripts/setup --bench, then scripts/build)";
  return nullptr;
}

}  // namespace softgpu::testing
