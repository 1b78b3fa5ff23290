// Modules, their kernels and variables, and the linker.
#include <chrono>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>

#include "softgpu/driver/api.h"
#include "softgpu/driver/context.h"
#include "softgpu/driver/driver.h"
#include "softgpu/driver/error_log.h"
#include "softgpu/driver/handles.h"
#include "softgpu/driver/image.h"
#include "softgpu/driver/jit_options.h"
#include "softgpu/driver/linker.h"
#include "softgpu/driver/module.h"

namespace softgpu::api {
namespace {

CUresult FindModule(CUmodule handle, std::shared_ptr<Module>* module) {
  *module = Driver::Get().modules.Find(handle);
  return *module != nullptr ? CUDA_SUCCESS : Fail(CUDA_ERROR_INVALID_HANDLE, "this is no module");
}

CUresult FindLinker(CUlinkState handle, std::shared_ptr<Linker>* linker) {
  *linker = Driver::Get().linkers.Find(handle);
  return *linker != nullptr ? CUDA_SUCCESS
                            : Fail(CUDA_ERROR_INVALID_HANDLE, "this is no link state");
}

CUresult LoadInto(const std::shared_ptr<Context>& context, std::shared_ptr<const PtxModule> ptx,
                  CUmodule* out) {
  std::shared_ptr<Module> module;
  const CUresult result = Module::Load(*context, std::move(ptx), &module);
  if (result == CUDA_SUCCESS) *out = module->handle();
  return result;
}

}  // namespace

CUresult cuModuleLoadDataEx(CUmodule* out, const void* image, unsigned int count,
                            CUjit_option* options, void** values) {
  std::shared_ptr<Context> context;
  if (out == nullptr || image == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = CurrentContext(&context);
  if (result != CUDA_SUCCESS) return result;
  std::shared_ptr<const PtxModule> ptx;
  result = LoadImage(image, JitOptions(count, options, values), &ptx);
  return result == CUDA_SUCCESS ? LoadInto(context, std::move(ptx), out) : result;
}

CUresult cuModuleLoadData(CUmodule* out, const void* image) {
  return api::cuModuleLoadDataEx(out, image, 0, nullptr, nullptr);
}

CUresult cuModuleLoadFatBinary(CUmodule* out, const void* image) {
  return api::cuModuleLoadDataEx(out, image, 0, nullptr, nullptr);
}

CUresult cuModuleLoad(CUmodule* out, const char* path) {
  std::shared_ptr<Context> context;
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = CurrentContext(&context);
  if (result != CUDA_SUCCESS) return result;
  std::shared_ptr<const PtxModule> ptx;
  result = LoadImageFile(path, JitOptions(0, nullptr, nullptr), &ptx);
  return result == CUDA_SUCCESS ? LoadInto(context, std::move(ptx), out) : result;
}

CUresult cuModuleUnload(CUmodule handle) {
  std::shared_ptr<Module> module;
  std::shared_ptr<Context> context;
  CUresult result = CurrentContext(&context);
  if (result == CUDA_SUCCESS) result = FindModule(handle, &module);
  if (result != CUDA_SUCCESS) return result;
  if (module->library_owned())
    return Fail(CUDA_ERROR_NOT_PERMITTED, "the module belongs to a library");
  module->Unload();  // work in flight keeps what it uses
  return CUDA_SUCCESS;
}

CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode* mode) {
  if (mode == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *mode = CU_MODULE_LAZY_LOADING;
  return CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction* out, CUmodule handle, const char* name) {
  std::shared_ptr<Module> module;
  if (out == nullptr || name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = FindModule(handle, &module);
  if (result != CUDA_SUCCESS) return result;
  const std::shared_ptr<Function> function = module->FindFunction(name);
  if (function == nullptr) {
    return Fail(CUDA_ERROR_NOT_FOUND, std::string("the module has no kernel ") + name);
  }
  *out = function->handle();
  return CUDA_SUCCESS;
}

CUresult cuModuleGetFunctionCount(unsigned int* count, CUmodule handle) {
  std::shared_ptr<Module> module;
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = FindModule(handle, &module);
  if (result == CUDA_SUCCESS) *count = static_cast<unsigned>(module->functions().size());
  return result;
}

CUresult cuModuleEnumerateFunctions(CUfunction* functions, unsigned int count, CUmodule handle) {
  std::shared_ptr<Module> module;
  if (functions == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = FindModule(handle, &module);
  if (result != CUDA_SUCCESS) return result;
  for (unsigned i = 0; i < count && i < module->functions().size(); ++i) {
    functions[i] = module->functions()[i]->handle();
  }
  return CUDA_SUCCESS;
}

CUresult cuModuleGetGlobal_v2(CUdeviceptr* address, size_t* bytes, CUmodule handle,
                              const char* name) {
  std::shared_ptr<Module> module;
  if (name == nullptr || (address == nullptr && bytes == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = FindModule(handle, &module);
  if (result != CUDA_SUCCESS) return result;
  const std::shared_ptr<Allocation> variable = module->FindVariable(name);
  if (variable == nullptr) {
    return Fail(CUDA_ERROR_NOT_FOUND, std::string("the module has no variable ") + name);
  }
  if (address != nullptr) *address = variable->base;
  if (bytes != nullptr) *bytes = variable->bytes;
  return CUDA_SUCCESS;
}

// --- linking

CUresult cuLinkCreate_v2(unsigned int count, CUjit_option* options, void** values,
                         CUlinkState* out) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const std::shared_ptr<Linker> linker =
      std::make_shared<Linker>(JitOptions(count, options, values));
  Driver::Get().linkers.Add(linker);
  *out = linker->handle();
  return CUDA_SUCCESS;
}

CUresult cuLinkCreate(unsigned int count, CUjit_option* options, void** values, CUlinkState* out) {
  return api::cuLinkCreate_v2(count, options, values, out);
}

CUresult cuLinkAddData_v2(CUlinkState handle, CUjitInputType type, void* data, size_t bytes,
                          const char* name, unsigned int, CUjit_option*, void**) {
  std::shared_ptr<Linker> linker;
  if (data == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = FindLinker(handle, &linker);
  if (result != CUDA_SUCCESS) return result;
  return linker->Add(type, {static_cast<const char*>(data), bytes}, name == nullptr ? "" : name);
}

CUresult cuLinkAddData(CUlinkState handle, CUjitInputType type, void* data, size_t bytes,
                       const char* name, unsigned int count, CUjit_option* options, void** values) {
  return api::cuLinkAddData_v2(handle, type, data, bytes, name, count, options, values);
}

CUresult cuLinkAddFile_v2(CUlinkState handle, CUjitInputType type, const char* path, unsigned int,
                          CUjit_option*, void**) {
  std::shared_ptr<Linker> linker;
  if (path == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = FindLinker(handle, &linker);
  if (result != CUDA_SUCCESS) return result;
  std::ifstream file(path, std::ios::binary);
  if (!file) return Fail(CUDA_ERROR_FILE_NOT_FOUND, std::string("can't read ") + path);
  const std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  return linker->Add(type, bytes, path);
}

CUresult cuLinkAddFile(CUlinkState handle, CUjitInputType type, const char* path,
                       unsigned int count, CUjit_option* options, void** values) {
  return api::cuLinkAddFile_v2(handle, type, path, count, options, values);
}

CUresult cuLinkComplete(CUlinkState handle, void** image, size_t* bytes) {
  std::shared_ptr<Linker> linker;
  if (image == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = FindLinker(handle, &linker);
  return result == CUDA_SUCCESS ? linker->Complete(image, bytes) : result;
}

CUresult cuLinkDestroy(CUlinkState handle) {
  return Driver::Get().linkers.Remove(handle) != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

}  // namespace softgpu::api
