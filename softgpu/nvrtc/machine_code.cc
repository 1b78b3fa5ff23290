#include "softgpu/nvrtc/machine_code.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "base/mutex.h"
#include "softgpu/driver/fatbin.h"
#include "softgpu/nvrtc/vendor.h"
#include "softgpu/tools/tool.h"

namespace softgpu::nvrtc {
namespace {

constexpr std::string_view kReal = "sm_", kVirtual = "compute_";

// What stands for machine code, by program.
struct Containers {
  base::Mutex mutex;
  std::map<nvrtcProgram, std::string> of GUARDED_BY(mutex);
};

Containers& All() {
  static Containers* const all = new Containers;
  return *all;
}

void Keep(nvrtcProgram program, std::string container) {
  const base::MutexLock lock(&All().mutex);
  All().of[program] = std::move(container);
}

void Forget(nvrtcProgram program) {
  const base::MutexLock lock(&All().mutex);
  All().of.erase(program);
}

std::optional<std::string> ContainerOf(nvrtcProgram program) {
  const base::MutexLock lock(&All().mutex);
  const auto found = All().of.find(program);
  if (found == All().of.end()) return std::nullopt;
  return found->second;
}

bool IsLinkTime(const std::string& word) {
  return word == "-dlto" || word == "--dlink-time-opt" || word == "--dlink-time-opt=true";
}

// Where the architecture begins in `word`, when it is there: behind the name of its option, or at
// the begin when the word before was that name.
size_t ArchitectureAt(const std::string& word, const std::string& before) {
  for (const std::string_view name : {"--gpu-architecture", "-arch", "--gpu-arch"}) {
    if (before == name) return 0;
    if (word.starts_with(name) && word.size() > name.size() && word[name.size()] == '=')
      return name.size() + 1;
  }
  return std::string::npos;
}

nvrtcResult KeepPtx(nvrtcProgram program, int architecture) {
  const Vendor& vendor = TheVendor();
  size_t bytes = 0;
  nvrtcResult result = vendor.nvrtcGetPTXSize(program, &bytes);
  std::string ptx(bytes, '\0');
  if (result == NVRTC_SUCCESS) result = vendor.nvrtcGetPTX(program, ptx.data());
  if (result != NVRTC_SUCCESS) return result;
  while (!ptx.empty() && ptx.back() == '\0') ptx.pop_back();
  Keep(program, MakeFatbin(ptx, static_cast<uint32_t>(architecture)));
  return NVRTC_SUCCESS;
}

}  // namespace

Options WithoutMachineCode(std::vector<std::string> words) {
  Options options;
  options.words = std::move(words);
  if (std::ranges::any_of(options.words, IsLinkTime)) return options;
  std::string before;
  for (std::string& word : options.words) {
    const size_t at = ArchitectureAt(word, before);
    before = word;
    if (at == std::string::npos) continue;
    const std::string name = word.substr(at);
    options.architecture = std::nullopt;  // the last one holds
    if (!name.starts_with(kReal)) continue;
    options.architecture = tools::ArchitectureOf(name);
    if (options.architecture.has_value()) word.replace(at, kReal.size(), kVirtual);
  }
  return options;
}

namespace ours {

nvrtcResult nvrtcCompileProgram(nvrtcProgram program, int count, const char* const* options) {
  const Vendor& vendor = TheVendor();
  if (vendor.nvrtcCompileProgram == nullptr) return Missing<nvrtcResult>();
  Forget(program);
  if (count <= 0 || options == nullptr) return vendor.nvrtcCompileProgram(program, count, options);
  Options changed = WithoutMachineCode({options, options + count});
  std::vector<const char*> words;
  for (const std::string& word : changed.words) words.push_back(word.c_str());
  const nvrtcResult result = vendor.nvrtcCompileProgram(program, count, words.data());
  if (result != NVRTC_SUCCESS || !changed.architecture.has_value()) return result;
  return KeepPtx(program, *changed.architecture);
}

nvrtcResult nvrtcDestroyProgram(nvrtcProgram* program) {
  if (TheVendor().nvrtcDestroyProgram == nullptr) return Missing<nvrtcResult>();
  if (program != nullptr) Forget(*program);
  return TheVendor().nvrtcDestroyProgram(program);
}

nvrtcResult nvrtcGetCUBINSize(nvrtcProgram program, size_t* bytes) {
  const std::optional<std::string> container = ContainerOf(program);
  if (container.has_value() && bytes != nullptr) {
    *bytes = container->size();
    return NVRTC_SUCCESS;
  }
  if (TheVendor().nvrtcGetCUBINSize == nullptr) return Missing<nvrtcResult>();
  return TheVendor().nvrtcGetCUBINSize(program, bytes);
}

nvrtcResult nvrtcGetCUBIN(nvrtcProgram program, char* cubin) {
  const std::optional<std::string> container = ContainerOf(program);
  if (container.has_value() && cubin != nullptr) {
    std::memcpy(cubin, container->data(), container->size());
    return NVRTC_SUCCESS;
  }
  if (TheVendor().nvrtcGetCUBIN == nullptr) return Missing<nvrtcResult>();
  return TheVendor().nvrtcGetCUBIN(program, cubin);
}

}  // namespace ours
}  // namespace softgpu::nvrtc
