// ptxas for the software GPU: compilers that want machine code get their own PTX back, checked, in
// the container that the driver's linker answers with and module loading accepts. Triton and XLA
// run it as they would run the vendor's, and need no other words.
#include <cstdio>
#include <memory>
#include <string>

#include "softgpu/driver/fatbin.h"
#include "softgpu/ptx/module.h"
#include "softgpu/tools/tool.h"

namespace softgpu::tools {
namespace {

constexpr int kDefaultArchitecture = 75;  // the vendor's

const Tool kPtxas = {"ptxas", "PTX assembler", 255, PtxasOptions()};

void Describe(const PtxModule& module, const std::string& architecture) {
  for (const std::unique_ptr<const Kernel>& kernel : module.kernels()) {
    Say(kPtxas, "info",
        "Compiling entry function '" + kernel->name() + "' for '" + architecture + "'");
    Say(kPtxas, "info", "Function properties for " + kernel->name());
    std::fprintf(stderr, "    %u bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n",
                 kernel->local_bytes());
    Say(kPtxas, "info",
        "Used " + std::to_string(kernel->register_count()) + " registers, " +
            std::to_string(kernel->static_shared_bytes()) + " bytes smem, " +
            std::to_string(kernel->param_bytes()) + " bytes cmem[0]");
  }
}

// The parser's log names no file: it is written as the driver's JIT would print it.
int ParseError(const std::string& path, std::string log) {
  constexpr std::string_view kNameless = "ptxas application ptx input";
  if (log.starts_with(kNameless)) log.replace(0, kNameless.size(), "ptxas " + path);
  std::fputs(log.c_str(), stderr);
  return Fatal(kPtxas, "Ptx assembly aborted due to errors");
}

// What an object that is to be linked may lack: the parser looks for it when all else is right.
bool LacksOnlyFunctions(const std::string& log) {
  return log.find("Unresolved extern function") != std::string::npos;
}

int Assemble(const std::string& path, const Arguments& arguments) {
  const std::optional<std::string> text = ReadFile(path);
  if (!text.has_value()) return Fatal(kPtxas, "Input file '" + path + "' could not be opened");
  std::string log;
  const std::string& wanted = arguments.architecture;
  int architecture = wanted.empty() ? kDefaultArchitecture : *ArchitectureOf(wanted);
  if (const std::shared_ptr<const PtxModule> module = PtxModule::Parse(*text, &log)) {
    if (!wanted.empty() && module->target() > architecture) {
      return Fatal(kPtxas, "SM version specified by .target is higher than " + wanted);
    }
    architecture = module->target();
    if (arguments.verbose)
      Describe(*module, wanted.empty() ? "sm_" + std::to_string(architecture) : wanted);
  } else if (!arguments.compile_only || !LacksOnlyFunctions(log)) {
    return ParseError(path, log);
  }
  const std::string output = arguments.output.empty() ? "elf.o" : arguments.output;
  if (!WriteFile(output, MakeFatbin(*text, static_cast<uint32_t>(architecture)))) {
    return Fatal(kPtxas, "Output file '" + output + "' could not be opened");
  }
  return 0;
}

int Main(int argc, char** argv) {
  int code = 0;
  const std::optional<Arguments> arguments = Begin(kPtxas, argc, argv, &code);
  if (!arguments.has_value()) return code;
  if (arguments->inputs.size() > 1) {
    return Fatal(kPtxas, "One input at a time; nvlink joins what was made with '-c'");
  }
  return Assemble(arguments->inputs.front(), *arguments);
}

}  // namespace
}  // namespace softgpu::tools

int main(int argc, char** argv) { return softgpu::tools::Main(argc, argv); }
