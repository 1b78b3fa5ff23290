#include "softgpu/tools/arguments.h"

#include <cstring>
#include <string_view>
#include <utility>

namespace softgpu::tools {
namespace {

constexpr OptionKind kFlag = OptionKind::kFlag, kValue = OptionKind::kValue,
                     kRefused = OptionKind::kRefused;

// Those of CUDA 13, and what Triton passes besides.
constexpr Option kPtxasOptions[] = {
    {"Ofast-compile", "Ofc", kValue},
    {"allow-expensive-optimizations", "", kValue},
    {"compile-as-tools-patch", "astoolspatch", kRefused},
    {"compile-only", "c", kFlag},
    {"compiler-annotations", "annotate", kFlag},
    {"def-load-cache", "dlcm", kValue},
    {"def-store-cache", "dscm", kValue},
    {"device-debug", "g", kFlag},
    {"device-function-maxrregcount", "func-maxrregcount", kValue},
    {"device-stack-protector", "", kValue},
    {"disable-optimizer-constants", "disable-optimizer-consts", kFlag},
    {"disable-warnings", "w", kFlag},
    {"dont-merge-basicblocks", "no-bb-merge", kFlag},
    {"entry", "e", kValue},
    {"extensible-whole-program", "ewp", kFlag},
    {"fmad", "", kValue},
    {"force-load-cache", "flcm", kValue},
    {"force-store-cache", "fscm", kValue},
    {"g-tensor-memory-access-check", "g-tmem-access-check", kFlag},
    {"generate-line-info", "lineinfo", kFlag},
    {"gno-tensor-memory-access-check", "gno-tmem-access-check", kFlag},
    {"gpu-name", "arch", kValue},
    {"help", "h", kFlag},
    {"input-as-string", "ias", kRefused},
    {"legacy-bar-warp-wide-behavior", "", kFlag},
    {"list-version", "version-ls", kRefused},
    {"machine", "m", kValue},
    {"make-errors-visible-at-exit", "", kFlag},
    {"maxntid", "", kValue},
    {"maxrregcount", "", kValue},
    {"minnctapersm", "", kValue},
    {"opt-level", "O", kValue},
    {"optimize-float-atomics", "opt-fp-atomics", kFlag},
    {"options-file", "optf", kRefused},
    {"output-file", "o", kValue},
    {"override-directive-values", "", kFlag},
    {"position-independent-code", "pic", kValue},
    {"preserve-relocs", "", kFlag},
    {"regAllocOptLevel", "", kValue},
    {"register-usage-level", "regUsageLevel", kValue},
    {"return-at-end", "ret-end", kFlag},
    {"sanitize", "", kRefused},
    {"sp-bounds-check", "", kFlag},
    {"split-compile", "", kValue},
    {"suppress-async-bulk-multicast-advisory-warning", "", kFlag},
    {"suppress-debug-info", "", kFlag},
    {"suppress-double-demote-warning", "", kFlag},
    {"suppress-sparse-mma-advisory-info", "", kFlag},
    {"suppress-stack-size-warning", "", kFlag},
    {"verbose", "v", kFlag},
    {"version", "V", kFlag},
    {"warn-on-double-precision-use", "warn-double-usage", kFlag},
    {"warn-on-local-memory-usage", "warn-lmem-usage", kFlag},
    {"warn-on-spills", "warn-spills", kFlag},
    {"warning-as-error", "Werror", kFlag},
};

constexpr Option kNvlinkOptions[] = {
    {"Ofast-compile", "Ofc", kValue},
    {"Xnvvm", "", kValue},
    {"Xptxas", "", kValue},
    {"arch", "", kValue},
    {"cpu-arch", "", kValue},
    {"debug", "g", kFlag},
    {"device-stack-protector", "", kFlag},
    {"disable-infos", "", kFlag},
    {"disable-warnings", "w", kFlag},
    {"dlto", "", kRefused},
    {"dump-callgraph", "", kRefused},
    {"dump-callgraph-no-demangle", "", kRefused},
    {"emit-ptx", "", kRefused},
    {"extra-warnings", "extrawarn", kFlag},
    {"gen-host-linker-script", "ghls", kRefused},
    {"help", "h", kFlag},
    {"ignore-host-info", "", kFlag},
    {"keep-system-libraries", "", kFlag},
    {"kernels-used", "", kValue},
    {"library", "l", kValue},
    {"library-path", "L", kValue},
    {"link-time-opt", "lto", kRefused},
    {"machine", "m", kValue},
    {"maxrregcount", "", kValue},
    {"nvvmpath", "", kValue},
    {"options-file", "optf", kRefused},
    {"output-file", "o", kValue},
    {"preserve-relocs", "", kFlag},
    {"register-link-binaries", "", kRefused},
    {"relocatable-link", "r", kFlag},
    {"report-arch", "", kRefused},
    {"split-compile", "", kValue},
    {"split-compile-extended", "", kValue},
    {"suppress-arch-warning", "", kFlag},
    {"suppress-debug-info", "", kFlag},
    {"suppress-stack-size-warning", "", kFlag},
    {"time", "", kRefused},
    {"uidx-file", "uidx", kRefused},
    {"use-host-info", "", kFlag},
    {"variables-used", "", kValue},
    {"verbose", "v", kFlag},
    {"version", "V", kFlag},
    {"warning-as-error", "Werror", kFlag},
};

// A word that begins with a dash, taken apart.
struct Written {
  std::string name;
  std::optional<std::string> value;  // behind "=", or attached to a letter
  const Option* option = nullptr;    // null: nothing of this name is known
};

const Option* Find(std::span<const Option> known, std::string_view name) {
  for (const Option& option : known) {
    if (name == option.name || (*option.brief != '\0' && name == option.brief)) return &option;
  }
  return nullptr;
}

Written TakeApart(std::span<const Option> known, std::string_view word) {
  const bool long_form = word.starts_with("--");
  word.remove_prefix(long_form ? 2 : 1);
  const size_t equals = word.find('=');
  Written written;
  written.name = word.substr(0, equals);
  if (equals != std::string_view::npos) written.value = word.substr(equals + 1);
  written.option = Find(known, written.name);
  if (written.option != nullptr || long_form || word.size() < 2) return written;
  const Option* const letter = Find(known, word.substr(0, 1));
  if (letter != nullptr && letter->kind == kValue) {
    return {std::string(word.substr(0, 1)), std::string(word.substr(1)), letter};
  }
  return written;
}

void Keep(const Option& option, const std::string& value, Arguments* arguments) {
  const std::string_view name = option.name;
  if (name == "output-file") arguments->output = value;
  if (name == "gpu-name" || name == "arch") arguments->architecture = value;
  if (name == "library") arguments->libraries.push_back(value);
  if (name == "library-path") arguments->library_directories.push_back(value);
  if (name == "compile-only") arguments->compile_only = true;
  if (name == "verbose") arguments->verbose = true;
  if (name == "version") arguments->version = true;
  if (name == "help") arguments->help = true;
}

// Empty, or what is wrong with an option that is not simply taken.
std::string Objection(const Written& written, Arguments* arguments) {
  if (written.option == nullptr && written.value.has_value()) {
    arguments->warnings.push_back("Option '" + written.name +
                                  "' is not known, and changes nothing: no machine code is made");
    return {};
  }
  if (written.option == nullptr) return "Unknown option '" + written.name + "'";
  if (written.option->kind == kRefused) {
    return "Option '" + written.name + "' is not supported: for the software GPU PTX is passed on";
  }
  if (written.option->kind == kFlag && written.value.has_value()) {
    return "no argument expected after '-" + written.name + "'";
  }
  return {};
}

}  // namespace

std::optional<Arguments> ParseArguments(std::span<const Option> known,
                                        std::span<const char* const> words, std::string* error) {
  Arguments arguments;
  for (size_t i = 0; i < words.size(); ++i) {
    if (*words[i] != '-' || std::strcmp(words[i], "-") == 0) {
      arguments.inputs.emplace_back(words[i]);
      continue;
    }
    Written written = TakeApart(known, words[i]);
    *error = Objection(written, &arguments);
    if (!error->empty()) return std::nullopt;
    if (written.option == nullptr) continue;
    if (written.option->kind == kValue && !written.value.has_value()) {
      if (i + 1 == words.size()) {
        *error = "argument expected after '-" + written.name + "'";
        return std::nullopt;
      }
      written.value = words[++i];
    }
    Keep(*written.option, written.value.value_or(""), &arguments);
  }
  return arguments;
}

std::span<const Option> PtxasOptions() { return kPtxasOptions; }
std::span<const Option> NvlinkOptions() { return kNvlinkOptions; }

}  // namespace softgpu::tools
