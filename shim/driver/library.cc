// Libraries and kernels.
#include "shim/libraries.h"

#include "shim/client.h"
#include "shim/contexts.h"
#include "shim/devices.h"
#include "shim/driver/local.h"
#include "shim/driver/module_file.h"
#include "shim/driver/ready.h"
#include "shim/function_lookup.h"
#include "shim/thread_state.h"

namespace local {
namespace {

using shim::Libraries;
using shim::Modules;

uint64_t BitsOf(const void* handle) { return reinterpret_cast<uint64_t>(handle); }

// Attributes of a kernel are asked per device: in the current context when it is on that device,
// else in the device's primary context.
class InContextOf {
 public:
  explicit InContextOf(CUdevice device) {
    int ordinal = 0;
    uint64_t context = 0;
    result_ = shim::Devices::Process().Ordinal(device, &ordinal);
    shim::Context* current = nullptr;
    if (shim::State::Process().Current(&current) == CUDA_SUCCESS && current->device == ordinal)
      return;
    if (result_ == CUDA_SUCCESS) result_ = shim::Contexts::RetainPrimary(ordinal, &context);
    if (result_ != CUDA_SUCCESS) return;
    retained_ = ordinal;
    shim::ThisThread().contexts.push_back(context);
  }
  InContextOf(const InContextOf&) = delete;
  ~InContextOf() {
    if (retained_ < 0) return;
    shim::ThisThread().contexts.pop_back();
    shim::Contexts::ReleasePrimary(retained_);
  }
  CUresult result() const { return result_; }

 private:
  CUresult result_;
  int retained_ = -1;
};

}  // namespace

CUresult cuLibraryLoadData(CUlibrary* library, const void* code, CUjit_option* jit_options,
                           void** jit_values, unsigned jit_count, CUlibraryOption*, void**,
                           unsigned) {
  if (const CUresult result = Ready(); result != CUDA_SUCCESS) return result;
  if (library == nullptr) return CUDA_ERROR_INVALID_VALUE;
  shim::JitOptions options;
  if (const CUresult result = Modules::ReadOptions(jit_count, jit_options, jit_values, &options);
      result != CUDA_SUCCESS) {
    return result;
  }
  uint64_t value = 0;
  const CUresult result = Libraries::Process().Load(code, std::move(options), &value);
  if (result == CUDA_SUCCESS) *library = reinterpret_cast<CUlibrary>(value);
  return result;
}

CUresult cuLibraryLoadFromFile(CUlibrary* library, const char* path, CUjit_option* jit_options,
                               void** jit_values, unsigned jit_count, CUlibraryOption* options,
                               void** values, unsigned count) {
  std::string bytes;
  if (const CUresult result = shim::ReadModuleFile(path, &bytes); result != CUDA_SUCCESS)
    return result;
  return local::cuLibraryLoadData(library, bytes.c_str(), jit_options, jit_values, jit_count,
                                  options, values, count);
}

CUresult cuLibraryUnload(CUlibrary library) {
  if (const CUresult result = Ready(); result != CUDA_SUCCESS) return result;
  return Libraries::Process().Unload(BitsOf(library));
}

CUresult cuLibraryGetKernel(CUkernel* kernel, CUlibrary library, const char* name) {
  if (const CUresult result = Ready(); result != CUDA_SUCCESS) return result;
  if (kernel == nullptr || name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  uint64_t value = 0;
  const CUresult result = Libraries::Process().FindKernel(BitsOf(library), name, &value);
  if (result == CUDA_SUCCESS) *kernel = reinterpret_cast<CUkernel>(value);
  return result;
}

CUresult cuLibraryGetModule(CUmodule* module, CUlibrary library) {
  if (const CUresult result = Ready(); result != CUDA_SUCCESS) return result;
  if (module == nullptr) return CUDA_ERROR_INVALID_VALUE;
  uint64_t value = 0;
  const CUresult result = Libraries::Process().ModuleOf(BitsOf(library), &value);
  if (result == CUDA_SUCCESS) *module = reinterpret_cast<CUmodule>(value);
  return result;
}

CUresult cuLibraryGetKernelCount(unsigned* count, CUlibrary library) {
  CUmodule module = nullptr;
  if (const CUresult result = local::cuLibraryGetModule(&module, library); result != CUDA_SUCCESS)
    return result;
  return local::cuModuleGetFunctionCount(count, module);
}

CUresult cuLibraryEnumerateKernels(CUkernel* kernels, unsigned capacity, CUlibrary library) {
  CUmodule module = nullptr;
  if (const CUresult result = local::cuLibraryGetModule(&module, library); result != CUDA_SUCCESS)
    return result;
  if (kernels == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::vector<std::string> names;
  CUresult result = Modules::FunctionNames(BitsOf(module), &names);
  for (unsigned i = 0; i < capacity && i < names.size() && result == CUDA_SUCCESS; ++i) {
    result = local::cuLibraryGetKernel(&kernels[i], library, names[i].c_str());
  }
  return result;
}

CUresult cuLibraryGetGlobal(CUdeviceptr* address, size_t* bytes, CUlibrary library,
                            const char* name) {
  CUmodule module = nullptr;
  if (const CUresult result = local::cuLibraryGetModule(&module, library); result != CUDA_SUCCESS)
    return result;
  return local::cuModuleGetGlobal_v2(address, bytes, module, name);
}

// --- kernels -------------------------------------------------------------------------------------

CUresult cuKernelGetFunction(CUfunction* function, CUkernel kernel) {
  if (const CUresult result = Ready(); result != CUDA_SUCCESS) return result;
  if (function == nullptr) return CUDA_ERROR_INVALID_VALUE;
  uint64_t value = 0;
  const CUresult result = Libraries::Process().FunctionOf(BitsOf(kernel), &value);
  if (result == CUDA_SUCCESS) *function = reinterpret_cast<CUfunction>(value);
  return result;
}

CUresult cuKernelGetLibrary(CUlibrary* library, CUkernel kernel) {
  if (const CUresult result = Ready(); result != CUDA_SUCCESS) return result;
  const shim::Kernel* const found = Libraries::Process().kernels.Find(BitsOf(kernel));
  if (found == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (library == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *library = reinterpret_cast<CUlibrary>(found->library);
  return CUDA_SUCCESS;
}

CUresult cuKernelGetName(const char** name, CUkernel kernel) {
  if (const CUresult result = Ready(); result != CUDA_SUCCESS) return result;
  const shim::Kernel* const found = Libraries::Process().kernels.Find(BitsOf(kernel));
  if (found == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *name = found->name.c_str();
  return CUDA_SUCCESS;
}

CUresult cuKernelGetAttribute(int* value, CUfunction_attribute attribute, CUkernel kernel,
                              CUdevice device) {
  if (const CUresult result = Ready(); result != CUDA_SUCCESS) return result;
  const InContextOf context(device);
  if (context.result() != CUDA_SUCCESS) return context.result();
  return local::cuFuncGetAttribute(value, attribute, reinterpret_cast<CUfunction>(kernel));
}

CUresult cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel kernel,
                              CUdevice device) {
  if (const CUresult result = Ready(); result != CUDA_SUCCESS) return result;
  const InContextOf context(device);
  if (context.result() != CUDA_SUCCESS) return context.result();
  return local::cuFuncSetAttribute(reinterpret_cast<CUfunction>(kernel), attribute, value);
}

// A preference about caches, which a shared device decides for all.
CUresult cuKernelSetCacheConfig(CUkernel kernel, CUfunc_cache, CUdevice) {
  if (const CUresult result = Ready(); result != CUDA_SUCCESS) return result;
  return Libraries::Process().kernels.Find(BitsOf(kernel)) != nullptr ? CUDA_SUCCESS
                                                                      : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuKernelGetParamInfo(CUkernel kernel, size_t index, size_t* offset, size_t* bytes) {
  return local::cuFuncGetParamInfo(reinterpret_cast<CUfunction>(kernel), index, offset, bytes);
}

}  // namespace local
