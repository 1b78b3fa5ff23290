#include "shim/libraries.h"

#include "shim/client.h"
#include "shim/function_lookup.h"
#include "shim/image.h"

namespace shim {

Libraries& Libraries::Process() {
  static Libraries* const libraries = new Libraries;
  return *libraries;
}

CUresult Libraries::Load(const void* image, JitOptions options, uint64_t* value) {
  const std::span<const std::byte> bytes = FindImage(image);
  if (bytes.empty()) return image == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_IMAGE;
  Library* const library = libraries.Create(value);
  if (library == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  library->image.assign(bytes.begin(), bytes.end());
  library->options = std::move(options);
  Context* context = nullptr;
  if (State::Process().Current(&context) != CUDA_SUCCESS) return CUDA_SUCCESS;
  uint64_t module = 0;
  const CUresult result = ModuleOf(*value, &module);
  // The program's log buffers were for this load only.
  library->options = JitOptions{library->options.options, library->options.values};
  if (result != CUDA_SUCCESS) libraries.Destroy(*value);
  return result;
}

CUresult Libraries::Unload(uint64_t value) {
  Library* const library = libraries.Find(value);
  if (library == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  CUresult result = CUDA_SUCCESS;
  const base::MutexLock lock(&library->mutex);
  for (const std::pair<const uint64_t, uint64_t>& entry : library->modules) {
    // A context that is gone took its modules with it.
    if (State::Process().modules.Find(entry.second) != nullptr)
      result = Modules::Unload(entry.second);
  }
  for (const std::pair<const std::string, uint64_t>& entry : library->kernels)
    kernels.Destroy(entry.second);
  libraries.Destroy(value);
  return result;
}

CUresult Libraries::ModuleOf(uint64_t value, uint64_t* module) {
  Library* const library = libraries.Find(value);
  if (library == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  Context* context = nullptr;
  uint64_t context_value = 0;
  if (const CUresult result = State::Process().Current(&context, &context_value);
      result != CUDA_SUCCESS) {
    return result;
  }
  const base::MutexLock lock(&library->mutex);
  const std::map<uint64_t, uint64_t>::const_iterator known = library->modules.find(context_value);
  if (known != library->modules.end() && State::Process().modules.Find(known->second) != nullptr) {
    *module = known->second;
    return CUDA_SUCCESS;
  }
  const CUresult result =
      Modules::Load(*context, context_value, library->image.data(), &library->options, module);
  if (result == CUDA_SUCCESS) library->modules[context_value] = *module;
  return result;
}

CUresult Libraries::FindKernel(uint64_t value, const char* name, uint64_t* kernel) {
  Library* const library = libraries.Find(value);
  if (library == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  uint64_t module = 0;
  uint64_t function = 0;
  if (ModuleOf(value, &module) == CUDA_SUCCESS) {
    if (const CUresult result = Modules::FindFunction(module, name, &function);
        result != CUDA_SUCCESS) {
      return result;
    }
  }
  const base::MutexLock lock(&library->mutex);
  const std::map<std::string, uint64_t, std::less<>>::const_iterator known =
      library->kernels.find(std::string_view(name));
  if (known != library->kernels.end()) {
    *kernel = known->second;
    return CUDA_SUCCESS;
  }
  Kernel* const made = kernels.Create(kernel);
  if (made == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  made->library = value;
  made->name = name;
  library->kernels.emplace(name, *kernel);
  return CUDA_SUCCESS;
}

CUresult Libraries::FunctionOf(uint64_t value, uint64_t* function) {
  const Kernel* const kernel = kernels.Find(value);
  if (kernel == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  uint64_t module = 0;
  if (const CUresult result = ModuleOf(kernel->library, &module); result != CUDA_SUCCESS)
    return result;
  return Modules::FindFunction(module, kernel->name.c_str(), function);
}

CUresult FindFunction(CUfunction program, Function** function, uint64_t* value) {
  if (const CUresult result = Client::Process().Ready(); result != CUDA_SUCCESS) return result;
  uint64_t bits = reinterpret_cast<uint64_t>(program);
  if (KindOf(bits) == ipc::HandleKind::kKernel) {
    const CUresult result = Libraries::Process().FunctionOf(bits, &bits);
    if (result != CUDA_SUCCESS) return result;
  }
  *function = State::Process().functions.Find(bits);
  if (value != nullptr) *value = bits;
  return *function != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

}  // namespace shim
