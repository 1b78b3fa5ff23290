// The compiler plugin: LLVM's passes over what Emitter makes, down to an object file in memory.
// Thread safety: one call at a time.
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Verifier.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/Host.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Transforms/InstCombine/InstCombine.h>
#include <llvm/Transforms/Scalar/DCE.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/GVN.h>
#include <llvm/Transforms/Scalar/SimplifyCFG.h>
#include <llvm/Transforms/Utils/Mem2Reg.h>

#if __has_include(<llvm/MC/TargetRegistry.h>)
#include <llvm/MC/TargetRegistry.h>
#else
#include <llvm/Support/TargetRegistry.h>
#endif

#include <atomic>
#include <cstdlib>

#include "softgpu/jit/llvm/emit.h"
#include "softgpu/jit/llvm/nan.h"

namespace softgpu::jit {
namespace {

struct Host {
  std::unique_ptr<llvm::TargetMachine> machine;
  Abilities abilities;
  std::string error;

  Host() {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    llvm::StringMap<bool> features;
    llvm::sys::getHostCPUFeatures(features);
    if (!features["avx2"] || !features["fma"] || !features["f16c"]) {
      error = "the processor lacks AVX2, FMA or F16C";
      return;
    }
    std::string list;
    for (const auto& feature : features) {
      // Half-precision instructions would round as the interpreter does not.
      const bool on = feature.second && feature.first() != "avx512fp16";
      list += std::string(list.empty() ? "" : ",") + (on ? "+" : "-") + feature.first().str();
    }
    const std::string triple = llvm::sys::getProcessTriple();
    const llvm::Target* target = llvm::TargetRegistry::lookupTarget(triple, error);
    if (target == nullptr) return;
    machine.reset(target->createTargetMachine(triple, llvm::sys::getHostCPUName(), list,
                                              llvm::TargetOptions(), llvm::Reloc::PIC_,
                                              llvm::CodeModel::Small, llvm::CodeGenOpt::Default));
    // AMD's are microcode: fewer accesses that miss the caches overlap than scalar ones would.
    abilities.gathers = machine->getMCSubtargetInfo()->checkFeatures("+fast-gather");
    abilities.scatters = abilities.gathers && features["avx512f"] && features["avx512bw"] &&
                         features["avx512dq"] && features["avx512vl"];
  }
};

void Optimise(llvm::Module* module, llvm::TargetMachine* machine) {
  llvm::PassBuilder builder(machine);
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager graphs;
  llvm::ModuleAnalysisManager modules;
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(graphs);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, graphs, modules);
  llvm::FunctionPassManager passes;
  passes.addPass(llvm::PromotePass());
  passes.addPass(llvm::EarlyCSEPass(true));
  passes.addPass(llvm::SimplifyCFGPass());
  passes.addPass(llvm::InstCombinePass());
  llvm::FunctionPassManager last;
  last.addPass(llvm::GVNPass());
  last.addPass(llvm::SimplifyCFGPass());
  last.addPass(llvm::DCEPass());
  for (llvm::Function& function : *module) {
    if (function.isDeclaration()) continue;
    passes.run(function, functions);
    SkipCanonicalNans(&function);
    functions.clear();
    last.run(function, functions);
  }
}

bool WriteObject(llvm::Module* module, llvm::TargetMachine* machine, std::string* object) {
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager passes;
  if (machine->addPassesToEmitFile(passes, stream, nullptr, llvm::CGFT_ObjectFile)) return false;
  passes.run(*module);
  object->assign(bytes.data(), bytes.size());
  return true;
}

std::atomic<bool> keeps_llvm{false};

}  // namespace
}  // namespace softgpu::jit

// This library is linked before the C library for itself and for the LLVM that is loaded with it:
// their destructors are not registered, for a program does not wait at its end until a kernel is
// compiled.
extern "C" {
[[gnu::visibility("hidden")]] extern void* __dso_handle;
[[gnu::visibility("default")]] int __cxa_atexit(void (*)(void*), void*, void* library) noexcept {
  if (library != &__dso_handle) softgpu::jit::keeps_llvm = true;
  return 0;
}
// False where the process had loaded that LLVM before.
[[gnu::visibility("default")]] bool SoftgpuJitOutlivesExit() { return softgpu::jit::keeps_llvm; }
}

extern "C" [[gnu::visibility("default")]] bool SoftgpuJitCompile_3(
    const softgpu::jit::Program& program, softgpu::jit::Compiled* out, std::string* error) {
  using namespace softgpu::jit;
  static Host* const host = new Host();
  if (host->machine == nullptr) {
    *error = host->error;
    return false;
  }
  const Flow flow(program);
  llvm::LLVMContext context;
  llvm::Module module("kernel", context);
  module.setTargetTriple(host->machine->getTargetTriple().str());
  module.setDataLayout(host->machine->createDataLayout());
  Emitter(flow, &module, host->abilities).Run();
  for (llvm::Function& function : module) {
    if (function.isDeclaration()) continue;
    function.addFnAttr("prefer-vector-width", "512");
    function.addFnAttr("min-legal-vector-width", "512");
    function.addFnAttr(llvm::Attribute::NoUnwind);
  }
  const bool show = std::getenv("LANEWAY_SOFTGPU_JIT_SHOW") != nullptr;
  if (show) module.print(llvm::errs(), nullptr);
  llvm::raw_string_ostream reason(*error);
  if (llvm::verifyModule(module, &reason)) return false;
  Optimise(&module, host->machine.get());
  if (show) module.print(llvm::errs(), nullptr);
  if (!WriteObject(&module, host->machine.get(), &out->object)) {
    *error = "LLVM emits no object files here";
    return false;
  }
  for (uint32_t n = 0; n < program.code.size(); ++n) {
    if (flow.entries[n]) out->entries.push_back(n);
  }
  return true;
}
