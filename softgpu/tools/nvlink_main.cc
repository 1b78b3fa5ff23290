// nvlink for the software GPU: joins what ptxas of this directory wrote, PTX, fat binaries that
// hold PTX, and the device runtime library, as the driver's linker does (softgpu/driver/linker.h).
#include <string>

#include "softgpu/driver/linker.h"
#include "softgpu/tools/tool.h"

namespace softgpu::tools {
namespace {

const Tool kNvlink = {"nvlink", "linker", 1, NvlinkOptions()};

constexpr std::string_view kArchiveMagic = "!<arch>\n";

int AddBytes(const std::string& bytes, const std::string& path, Linker* linker) {
  const CUjitInputType type =
      bytes.starts_with(kArchiveMagic) ? CU_JIT_INPUT_LIBRARY : CU_JIT_INPUT_OBJECT;
  return linker->Add(type, bytes, path) == CUDA_SUCCESS ? 0 : Fatal(kNvlink);
}

int Add(const std::string& path, Linker* linker) {
  const std::optional<std::string> bytes = ReadFile(path);
  if (!bytes.has_value()) return Fatal(kNvlink, "Could not open input file '" + path + "'");
  return AddBytes(*bytes, path, linker);
}

// -lNAME, in the directories of -L in their order.
int AddLibrary(const std::string& name, const Arguments& arguments, Linker* linker) {
  for (const std::string& directory : arguments.library_directories) {
    const std::string path = directory + "/lib" + name + ".a";
    const std::optional<std::string> bytes = ReadFile(path);
    if (bytes.has_value()) return AddBytes(*bytes, path, linker);
  }
  return Fatal(kNvlink, "Could not find library '" + name + "'");
}

int Main(int argc, char** argv) {
  int code = 0;
  const std::optional<Arguments> arguments = Begin(kNvlink, argc, argv, &code);
  if (!arguments.has_value()) return code;
  if (arguments->output.empty()) return Fatal(kNvlink, "No output file specified");
  Linker linker(JitOptions(0, nullptr, nullptr));
  for (const std::string& input : arguments->inputs) {
    if (const int failed = Add(input, &linker); failed != 0) return failed;
  }
  for (const std::string& library : arguments->libraries) {
    if (const int failed = AddLibrary(library, *arguments, &linker); failed != 0) return failed;
  }
  void* image = nullptr;
  size_t bytes = 0;
  if (linker.Complete(&image, &bytes) != CUDA_SUCCESS) return Fatal(kNvlink);
  if (!WriteFile(arguments->output, {static_cast<const char*>(image), bytes})) {
    return Fatal(kNvlink, "Could not open output file '" + arguments->output + "'");
  }
  return 0;
}

}  // namespace
}  // namespace softgpu::tools

int main(int argc, char** argv) { return softgpu::tools::Main(argc, argv); }
