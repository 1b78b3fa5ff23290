#include "cli/frameworks.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "ipc/environment.h"

namespace cli {
namespace {

const std::string* Find(const std::vector<std::string>& environment, const std::string& name) {
  for (const std::string& entry : environment) {
    if (absl::StartsWith(entry, name + "=")) return &entry;
  }
  return nullptr;
}

void SetUnlessSet(const std::string& name, const std::string& value,
                  std::vector<std::string>* environment) {
  if (Find(*environment, name) == nullptr) ipc::SetVariable(environment, name, value);
}

}  // namespace

void UseStreamOrderedMemory(std::vector<std::string>* environment) {
  constexpr const char* kSwitches[][2] = {
      {"PYTORCH_ALLOC_CONF", "backend:cudaMallocAsync"},
      {"XLA_PYTHON_CLIENT_ALLOCATOR", "cuda_async"},
      {"TF_GPU_ALLOCATOR", "cuda_malloc_async"},
      {"LRU", "0"},  // tinygrad
  };
  for (const char* const(&variable)[2] : kSwitches) {
    SetUnlessSet(variable[0], variable[1], environment);
  }
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
