#include "softgpu/tools/tool.h"

#include <cstdio>
#include <fstream>
#include <iterator>

#include "softgpu/driver/error_log.h"
#include "softgpu/driver/version.h"

namespace softgpu {
namespace {

thread_local std::string last_sentence;  // a program may link on several threads

}  // namespace

// The linker's sentences, which libcuda.so.1 puts into its error log: here the tool prints them.
CUresult Fail(CUresult code, std::string_view why) {
  last_sentence = why;
  return code;
}

CUresult FailAloud(CUresult code, std::string_view why, std::atomic<bool>*) {
  return Fail(code, why);
}

namespace tools {
namespace {

// Triton reads the number behind "release", XLA the one behind "V"; Triton names its cache by all.
void PrintVersion(const Tool& tool) {
  constexpr int kMajor = kDriverVersion / 1000, kMinor = kDriverVersion % 1000 / 10;
  std::printf(
      "%s: Laneway's %s for the software GPU\n"
      "Passes PTX on; makes no machine code\n"
      "Cuda compilation tools, release %d.%d, V%d.%d.0\n"
      "Build laneway_%s\n",
      tool.name, tool.what, kMajor, kMinor, kMajor, kMinor, LANEWAY_VERSION);
}

void PrintHelp(const Tool& tool) {
  std::printf("Usage  : %s [options] <file>...\n\nOptions that change nothing are taken, too.\n\n",
              tool.name);
  for (const Option& option : tool.options) {
    if (option.kind == OptionKind::kRefused) continue;
    const std::string brief = *option.brief == '\0' ? "" : std::string("(-") + option.brief + ")";
    const char* const value = option.kind == OptionKind::kValue ? "<value>" : "";
    std::printf("--%s %s %s\n", option.name, value, brief.c_str());
  }
}

}  // namespace

std::optional<Arguments> Begin(const Tool& tool, int argc, char** argv, int* code) {
  std::string error;
  const std::span<const char* const> words(argv + 1, argc > 0 ? argc - 1 : 0);
  std::optional<Arguments> arguments = ParseArguments(tool.options, words, &error);
  *code = 0;
  if (!arguments.has_value()) {
    *code = Fatal(tool, error);
    return std::nullopt;
  }
  for (const std::string& warning : arguments->warnings) Say(tool, "warning", warning);
  if (arguments->version) {
    PrintVersion(tool);
  } else if (arguments->help || words.empty()) {
    PrintHelp(tool);
    *code = arguments->help ? 0 : tool.failed;
  } else if (!arguments->architecture.empty() &&
             !ArchitectureOf(arguments->architecture).has_value()) {
    *code =
        Fatal(tool, "Value '" + arguments->architecture + "' is not defined for option '" +
                        (tool.options.data() == PtxasOptions().data() ? "gpu-name" : "arch") + "'");
  } else if (arguments->inputs.empty()) {
    *code = Fatal(tool, "No input files specified; use option --help for more information");
  } else {
    return arguments;
  }
  return std::nullopt;
}

void Say(const Tool& tool, const char* level, std::string_view sentence) {
  std::fprintf(stderr, "%s %-8s: %.*s\n", tool.name, level, static_cast<int>(sentence.size()),
               sentence.data());
}

int Fatal(const Tool& tool, std::string_view sentence) {
  Say(tool, "fatal", sentence);
  return tool.failed;
}

int Fatal(const Tool& tool) { return Fatal(tool, last_sentence); }

std::string LastSentence() { return last_sentence; }

std::optional<std::string> ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  return file.bad() ? std::nullopt : std::optional<std::string>(std::move(bytes));
}

bool WriteFile(const std::string& path, std::string_view bytes) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  return !file.fail();
}

std::optional<int> ArchitectureOf(std::string_view name) {
  const size_t digits = name.find_first_of("0123456789");
  if (digits == std::string_view::npos) return std::nullopt;
  const std::string_view kind = name.substr(0, digits);
  if (kind != "sm_" && kind != "compute_") return std::nullopt;
  std::string_view number = name.substr(digits);
  if (number.ends_with('a') || number.ends_with('f')) number.remove_suffix(1);
  if (number.size() < 2 || number.size() > 3 ||
      number.find_first_not_of("0123456789") != std::string_view::npos) {
    return std::nullopt;
  }
  const int architecture = std::stoi(std::string(number));
  return architecture >= 50 ? std::optional<int>(architecture) : std::nullopt;
}

}  // namespace tools
}  // namespace softgpu
