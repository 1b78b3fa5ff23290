#include "cli/frameworks.h"

#include <optional>
#include <span>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "ipc/environment.h"
#include "ipc/replay_mode.h"

namespace cli {
namespace {

const std::string* Find(const std::vector<std::string>& environment, const std::string& name) {
  for (const std::string& entry : environment) {
    if (absl::StartsWith(entry, name + "=")) return &entry;
  }
  return nullptr;
}

struct Variable {
  const char* name;
  const char* value;
};

std::vector<std::string> UnlessSet(std::span<const Variable> variables,
                                   const std::vector<std::string>& environment) {
  std::vector<std::string> unset;
  for (const Variable& variable : variables) {
    if (Find(environment, variable.name) == nullptr)
      unset.push_back(absl::StrCat(variable.name, "=", variable.value));
  }
  return unset;
}

void SetUnlessSet(const std::string& name, const std::string& value,
                  std::vector<std::string>* environment) {
  if (Find(*environment, name) == nullptr) ipc::SetVariable(environment, name, value);
}

}  // namespace

std::vector<std::string> MemoryVariables(const std::vector<std::string>& environment) {
  constexpr Variable kVariables[] = {
      {"PYTORCH_ALLOC_CONF", "backend:cudaMallocAsync"},
      {"XLA_PYTHON_CLIENT_ALLOCATOR", "cuda_async"},
      {"TF_GPU_ALLOCATOR", "cuda_malloc_async"},
      {"LRU", "0"},  // tinygrad
  };
  return UnlessSet(kVariables, environment);
}

std::vector<std::string> ReplayVariables(const std::vector<std::string>& environment) {
  constexpr Variable kVariables[] = {{"NO_MEMORY_PLANNER", "1"}};  // tinygrad
  return UnlessSet(kVariables, environment);
}

bool Replays(const ipc::Options& options) {
  const std::optional<ipc::ReplayMode> mode = ipc::ParseReplayMode(options.replay);
  return mode.has_value() && mode->kind != ipc::ReplayMode::Kind::kOff &&
         options.mode != "in-process" && options.transport == "ring";
}

void UseToolsOfSoftwareGpu(const std::string& tools, std::vector<std::string>* environment) {
  // Triton asks the second for architectures from sm_90 on.
  for (const char* const variable : {"TRITON_PTXAS_PATH", "TRITON_PTXAS_BLACKWELL_PATH"}) {
    SetUnlessSet(variable, absl::StrCat(tools, "/ptxas"), environment);
  }
  constexpr std::string_view kPath = "PATH=";
  const std::string* const path = Find(*environment, "PATH");
  // Without PATH, programs are looked for in a default of their own.
  if (path == nullptr || path->size() == kPath.size()) return;
  ipc::SetVariable(environment, "PATH", absl::StrCat(tools, ":", path->substr(kPath.size())));
}

}  // namespace cli
