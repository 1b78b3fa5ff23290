// What the stand-ins for ptxas and nvlink share: files, versions, and sentences in the vendor's
// form
// ("ptxas fatal   : ..."), which the programs that run them look for.
//
// Thread safety: functions without state, but for LastSentence().
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "softgpu/tools/arguments.h"

namespace softgpu::tools {

// Names the tool in every sentence, and its kind in --version.
struct Tool {
  const char* name;
  const char* what;
  int failed;  // the vendor's exit code
  std::span<const Option> options;
};

// Parses the words, and answers --version and --help. None: the tool ends with *code.
std::optional<Arguments> Begin(const Tool& tool, int argc, char** argv, int* code);

void Say(const Tool& tool, const char* level, std::string_view sentence);
int Fatal(const Tool& tool, std::string_view sentence);  // the exit code
int Fatal(const Tool& tool);                             // with LastSentence()
// What the driver's code said last on this thread (see tool.cc).
std::string LastSentence();

std::optional<std::string> ReadFile(const std::string& path);
bool WriteFile(const std::string& path, std::string_view bytes);

// 80 for sm_80, 90 for sm_90a or compute_90; none for anything else.
std::optional<int> ArchitectureOf(std::string_view name);

}  // namespace softgpu::tools
