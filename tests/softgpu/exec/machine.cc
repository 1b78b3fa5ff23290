#include "tests/softgpu/exec/machine.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstdlib>
#include <string_view>

#include "base/mutex.h"
#include "ipc/calls/limits.h"
#include "softgpu/jit/compiler.h"

namespace softgpu::testing {

namespace {

// SOFTGPU_EXECUTOR=llvm runs every test's kernels compiled.
void ChooseExecutor() {
  static const bool chosen = [] {
    const char* wanted = std::getenv("SOFTGPU_EXECUTOR");
    const bool llvm = wanted != nullptr && std::string_view(wanted) == "llvm";
    jit::UseExecutor(llvm ? jit::Executor::kLlvm : jit::Executor::kInterpreter, false, JIT_DIR);
    return true;
  }();
  static_cast<void>(chosen);
}

}  // namespace

Machine::Machine(size_t bytes) : bytes_(bytes) {
  ChooseExecutor();
  static uint64_t next = ipc::limits::kWindowBase + (1ull << 30);
  void* at = mmap(reinterpret_cast<void*>(next), bytes, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
  if (at == MAP_FAILED) throw std::runtime_error("no memory in the window");
  base_ = reinterpret_cast<uint64_t>(at);
}

Machine::~Machine() { munmap(reinterpret_cast<void*>(base_), bytes_); }

uint64_t Machine::Allocate(size_t bytes) {
  const uint64_t address = base_ + used_;
  used_ += (bytes + 511) / 512 * 512;
  if (used_ > bytes_) throw std::runtime_error("the test machine is full");
  return address;
}

void Machine::Load(const std::string& ptx) {
  std::string log;
  module_ = PtxModule::Parse(ptx, &log);
  ASSERT_NE(module_, nullptr) << log;
  variables_.clear();
  for (const Variable& variable : module_->variables())
    variables_.push_back(Allocate(variable.bytes));
  for (size_t v = 0; v < variables_.size(); ++v) {
    const Variable& variable = module_->variables()[v];
    std::copy(variable.init.begin(), variable.init.end(),
              reinterpret_cast<std::byte*>(variables_[v]));
    for (const Variable::Relocation& relocation : variable.relocations) {
      const uint64_t address = variables_[relocation.variable] + relocation.addend;
      std::memcpy(reinterpret_cast<void*>(variables_[v] + relocation.offset), &address, 8);
    }
  }
}

uint64_t Machine::VariableAddress(const std::string& name) const {
  for (size_t v = 0; v < variables_.size(); ++v) {
    if (module_->variables()[v].name == name) return variables_[v];
  }
  return 0;
}

std::optional<Fault> Machine::Launch(const std::string& name, Dim3 grid, Dim3 block,
                                     const std::vector<std::vector<std::byte>>& values) {
  const Kernel* kernel = nullptr;
  for (const std::unique_ptr<const Kernel>& candidate : module_->kernels()) {
    if (candidate->name().find(name) == std::string::npos) continue;
    if (kernel == nullptr || candidate->name().size() < kernel->name().size())
      kernel = candidate.get();
  }
  if (kernel == nullptr) throw std::runtime_error("no kernel " + name);
  std::vector<std::byte> parameters(kernel->param_bytes());
  for (size_t p = 0; p < values.size(); ++p) {
    std::memcpy(parameters.data() + kernel->params().at(p).offset, values[p].data(),
                std::min<size_t>(values[p].size(), kernel->params()[p].bytes));
  }
  softgpu::Launch launch;
  launch.kernel = kernel;
  launch.grid = grid;
  launch.block = block;
  launch.dynamic_shared_bytes = dynamic_shared;
  launch.parameters = parameters;
  launch.variables = variables_;
  launch.cancel = &cancel;
  launch.cooperative = cooperative;
  launch.print = [this](std::string_view text) { printed += text; };
  launch.watchdog_ms = watchdog_ms;
  launch.objects.heap = heap;
  base::Mutex mutex;
  if (checked) {
    launch.report = [&](const Finding& finding) {
      base::MutexLock lock(&mutex);
      findings.push_back(finding);
    };
  }
  return Execute(launch);
}

std::string ElementKernel(const std::string& in_type, const std::string& out_type,
                          const std::string& body) {
  const std::string in_bits = in_type.substr(in_type.find_first_of("0123456789"));
  const auto bytes = [](const std::string& type) {
    const std::string digits = type.substr(type.find_first_of("0123456789"));
    return digits == "16x2" ? 4 : std::stoi(digits) / 8;
  };
  const std::string in = "b" + std::to_string(bytes(in_type) * 8);
  const std::string out = "b" + std::to_string(bytes(out_type) * 8);
  std::string text = R"(.version 8.5
.target sm_90
.address_size 64
.visible .entry element(.param .u64 pa, .param .u64 pb, .param .u64 pc, .param .u64 pd,
                        .param .u32 n)
{
  .reg .pred %p, %q, %out;
  .reg .b32 %r<8>, %i, %n, %m;
  .reg .b16 %h<8>;
  .reg .b64 %l<8>, %at, %base;
)";
  text += "  .reg ." + in + " %a, %b, %c;\n  .reg ." + out + " %d;\n";
  text += R"(
  mov.u32 %i, %ctaid.x;
  mov.u32 %n, %ntid.x;
  mov.u32 %m, %tid.x;
  mad.lo.s32 %i, %i, %n, %m;
  ld.param.u32 %n, [n];
  setp.ge.u32 %out, %i, %n;
  @%out bra DONE;
)";
  for (const char* name : {"a", "b", "c"}) {
    text += "  ld.param.u64 %base, [p" + std::string(name) + "];\n  mad.wide.u32 %at, %i, " +
            std::to_string(bytes(in_type)) + ", %base;\n  ld.global." + in + " %" + name +
            ", [%at];\n";
  }
  text += body + "\n  ld.param.u64 %base, [pd];\n  mad.wide.u32 %at, %i, " +
          std::to_string(bytes(out_type)) + ", %base;\n  st.global." + out +
          " [%at], %d;\nDONE:\n  ret;\n}\n";
  return text;
}

}  // namespace softgpu::testing
