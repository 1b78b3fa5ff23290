// Command lines as NVIDIA's ptxas and nvlink read them: -name value, --name value, --name=value,
// and letters with their value attached (-O3). Tables say what each of the two knows.
//
// Most options shape machine code, which is never made here: they are accepted and change nothing.
// Thread safety: values.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace softgpu::tools {

enum class OptionKind {
  kFlag,     // takes no value
  kValue,    // takes one
  kRefused,  // asks for something that passing PTX through can't give
};

struct Option {
  const char* name;   // "output-file"
  const char* brief;  // "o"
  OptionKind kind;
};

struct Arguments {
  std::vector<std::string> inputs;
  std::string output;
  std::string architecture;  // as written: sm_80, sm_90a; empty: not given
  std::vector<std::string> libraries, library_directories;
  bool verbose = false, version = false, help = false, compile_only = false;
  std::vector<std::string> warnings;
};

// What `words` (without the program's name) ask for. On failure none, with the sentence in `error`.
std::optional<Arguments> ParseArguments(std::span<const Option> known,
                                        std::span<const char* const> words, std::string* error);

std::span<const Option> PtxasOptions();
std::span<const Option> NvlinkOptions();

}  // namespace softgpu::tools
