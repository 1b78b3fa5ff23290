// Libraries: modules that belong to no context, and their kernels.
#include <memory>
#include <string>
#include <utility>

#include "softgpu/driver/api.h"
#include "softgpu/driver/context.h"
#include "softgpu/driver/driver.h"
#include "softgpu/driver/error_log.h"
#include "softgpu/driver/handles.h"
#include "softgpu/driver/image.h"
#include "softgpu/driver/jit_options.h"
#include "softgpu/driver/library.h"
#include "softgpu/driver/module.h"

namespace softgpu::api {
namespace {

CUresult FindLibrary(CUlibrary handle, std::shared_ptr<Library>* library) {
  *library = Driver::Get().libraries.Find(handle);
  return *library != nullptr ? CUDA_SUCCESS : Fail(CUDA_ERROR_INVALID_HANDLE, "this is no library");
}

CUresult FindKernel(CUkernel handle, std::shared_ptr<LibraryKernel>* kernel,
                    std::shared_ptr<Library>* library) {
  *kernel = Driver::Get().kernels.Find(handle);
  if (*kernel == nullptr) return Fail(CUDA_ERROR_INVALID_HANDLE, "this is no kernel of a library");
  *library = (*kernel)->library();
  return *library != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

// The library's module in the current context.
CUresult FindModuleHere(CUlibrary handle, std::shared_ptr<Module>* module) {
  std::shared_ptr<Library> library;
  std::shared_ptr<Context> context;
  CUresult result = FindLibrary(handle, &library);
  if (result == CUDA_SUCCESS) result = CurrentContext(&context);
  return result == CUDA_SUCCESS ? library->InContext(*context, module) : result;
}

CUresult FindVariable(CUdeviceptr* address, size_t* bytes, CUlibrary handle, const char* name,
                      bool managed) {
  std::shared_ptr<Module> module;
  if (name == nullptr || (address == nullptr && bytes == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = FindModuleHere(handle, &module);
  if (result != CUDA_SUCCESS) return result;
  const std::shared_ptr<Allocation> variable = module->FindVariable(name);
  if (variable == nullptr || (managed && variable->kind != Allocation::Kind::kManaged)) {
    return Fail(CUDA_ERROR_NOT_FOUND, std::string("the library has no such variable: ") + name);
  }
  if (address != nullptr) *address = variable->base;
  if (bytes != nullptr) *bytes = variable->bytes;
  return CUDA_SUCCESS;
}

}  // namespace

CUresult cuLibraryLoadData(CUlibrary* out, const void* code, CUjit_option* options, void** values,
                           unsigned int count, CUlibraryOption*, void**, unsigned int) {
  if (out == nullptr || code == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::shared_ptr<const PtxModule> ptx;
  const CUresult result = LoadImage(code, JitOptions(count, options, values), &ptx);
  if (result == CUDA_SUCCESS) *out = Library::Load(std::move(ptx))->handle();
  return result;
}

CUresult cuLibraryLoadFromFile(CUlibrary* out, const char* path, CUjit_option* options,
                               void** values, unsigned int count, CUlibraryOption*, void**,
                               unsigned int) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::shared_ptr<const PtxModule> ptx;
  const CUresult result = LoadImageFile(path, JitOptions(count, options, values), &ptx);
  if (result == CUDA_SUCCESS) *out = Library::Load(std::move(ptx))->handle();
  return result;
}

CUresult cuLibraryUnload(CUlibrary handle) {
  std::shared_ptr<Library> library;
  const CUresult result = FindLibrary(handle, &library);
  if (result != CUDA_SUCCESS) return result;
  library->Unload();  // work in flight keeps what it uses
  return CUDA_SUCCESS;
}

CUresult cuLibraryGetKernel(CUkernel* out, CUlibrary handle, const char* name) {
  std::shared_ptr<Library> library;
  if (out == nullptr || name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = FindLibrary(handle, &library);
  if (result != CUDA_SUCCESS) return result;
  const std::shared_ptr<LibraryKernel> kernel = library->FindKernel(name);
  if (kernel == nullptr) {
    return Fail(CUDA_ERROR_NOT_FOUND, std::string("the library has no kernel ") + name);
  }
  *out = kernel->handle();
  return CUDA_SUCCESS;
}

CUresult cuLibraryGetKernelCount(unsigned int* count, CUlibrary handle) {
  std::shared_ptr<Library> library;
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = FindLibrary(handle, &library);
  if (result == CUDA_SUCCESS) *count = static_cast<unsigned>(library->kernels().size());
  return result;
}

CUresult cuLibraryEnumerateKernels(CUkernel* kernels, unsigned int count, CUlibrary handle) {
  std::shared_ptr<Library> library;
  if (kernels == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = FindLibrary(handle, &library);
  if (result != CUDA_SUCCESS) return result;
  for (unsigned i = 0; i < count && i < library->kernels().size(); ++i) {
    kernels[i] = library->kernels()[i]->handle();
  }
  return CUDA_SUCCESS;
}

CUresult cuLibraryGetModule(CUmodule* out, CUlibrary handle) {
  std::shared_ptr<Module> module;
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = FindModuleHere(handle, &module);
  if (result == CUDA_SUCCESS) *out = module->handle();
  return result;
}

CUresult cuLibraryGetGlobal(CUdeviceptr* address, size_t* bytes, CUlibrary handle,
                            const char* name) {
  return FindVariable(address, bytes, handle, name, false);
}

CUresult cuLibraryGetManaged(CUdeviceptr* address, size_t* bytes, CUlibrary handle,
                             const char* name) {
  return FindVariable(address, bytes, handle, name, true);
}

// --- kernels

CUresult cuKernelGetFunction(CUfunction* out, CUkernel handle) {
  std::shared_ptr<LibraryKernel> kernel;
  std::shared_ptr<Library> library;
  std::shared_ptr<Context> context;
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = FindKernel(handle, &kernel, &library);
  if (result == CUDA_SUCCESS) result = CurrentContext(&context);
  if (result != CUDA_SUCCESS) return result;
  std::shared_ptr<Function> function;
  result = library->FunctionOf(*kernel, *context, &function);
  if (result == CUDA_SUCCESS) *out = function->handle();
  return result;
}

CUresult cuKernelGetLibrary(CUlibrary* out, CUkernel handle) {
  std::shared_ptr<LibraryKernel> kernel;
  std::shared_ptr<Library> library;
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = FindKernel(handle, &kernel, &library);
  if (result == CUDA_SUCCESS) *out = library->handle();
  return result;
}

CUresult cuKernelGetName(const char** name, CUkernel handle) {
  std::shared_ptr<LibraryKernel> kernel;
  std::shared_ptr<Library> library;
  if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = FindKernel(handle, &kernel, &library);
  if (result == CUDA_SUCCESS) *name = kernel->kernel().name().c_str();
  return result;
}

CUresult cuKernelGetParamInfo(CUkernel handle, size_t index, size_t* offset, size_t* bytes) {
  std::shared_ptr<LibraryKernel> kernel;
  std::shared_ptr<Library> library;
  if (offset == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = FindKernel(handle, &kernel, &library);
  if (result != CUDA_SUCCESS) return result;
  if (index >= kernel->kernel().params().size()) return CUDA_ERROR_INVALID_VALUE;
  *offset = kernel->kernel().params()[index].offset;
  if (bytes != nullptr) *bytes = kernel->kernel().params()[index].bytes;
  return CUDA_SUCCESS;
}

CUresult cuKernelGetAttribute(int* value, CUfunction_attribute attribute, CUkernel handle,
                              CUdevice) {
  std::shared_ptr<LibraryKernel> kernel;
  std::shared_ptr<Library> library;
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = FindKernel(handle, &kernel, &library);
  if (result != CUDA_SUCCESS) return result;
  return kernel->attributes().Get(kernel->kernel(), library->ptx(), Driver::Get().config(),
                                  attribute, value);
}

CUresult cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel handle,
                              CUdevice) {
  std::shared_ptr<LibraryKernel> kernel;
  std::shared_ptr<Library> library;
  const CUresult result = FindKernel(handle, &kernel, &library);
  if (result != CUDA_SUCCESS) return result;
  return library->SetAttribute(*kernel, attribute, value);
}

CUresult cuKernelSetCacheConfig(CUkernel handle, CUfunc_cache, CUdevice) {
  std::shared_ptr<LibraryKernel> kernel;
  std::shared_ptr<Library> library;
  return FindKernel(handle, &kernel, &library);
}

}  // namespace softgpu::api
