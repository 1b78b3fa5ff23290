// Modules and functions.
#include "shim/modules.h"

#include <string>
#include <vector>

#include "shim/driver/local.h"
#include "shim/driver/module_file.h"
#include "shim/driver/ready.h"
#include "shim/function_lookup.h"
#include "shim/send.h"

namespace local {
namespace {

using shim::Context;
using shim::Function;
using shim::JitOptions;
using shim::Modules;
using shim::State;

// Into the calling thread's current context.
CUresult Load(CUmodule* module, const void* image, JitOptions* options) {
  Context* context = nullptr;
  uint64_t context_value = 0;
  if (const CUresult result = State::Process().Current(&context, &context_value);
      result != CUDA_SUCCESS) {
    return result;
  }
  if (module == nullptr || image == nullptr) return CUDA_ERROR_INVALID_VALUE;
  uint64_t value = 0;
  const CUresult result = Modules::Load(*context, context_value, image, options, &value);
  if (result == CUDA_SUCCESS) *module = reinterpret_cast<CUmodule>(value);
  return result;
}

uint64_t Bits(CUmodule module) { return reinterpret_cast<uint64_t>(module); }

}  // namespace

CUresult cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned count,
                            CUjit_option* options, void** values) {
  JitOptions read;
  if (const CUresult result = Modules::ReadOptions(count, options, values, &read);
      result != CUDA_SUCCESS) {
    return result;
  }
  return Load(module, image, &read);
}
CUresult cuModuleLoadData(CUmodule* module, const void* image) {
  JitOptions none;
  return Load(module, image, &none);
}
CUresult cuModuleLoadFatBinary(CUmodule* module, const void* image) {
  return local::cuModuleLoadData(module, image);
}

CUresult cuModuleLoad(CUmodule* module, const char* path) {
  std::string bytes;
  if (const CUresult result = shim::ReadModuleFile(path, &bytes); result != CUDA_SUCCESS)
    return result;
  return local::cuModuleLoadData(module, bytes.c_str());
}

CUresult cuModuleUnload(CUmodule module) {
  if (const CUresult result = Ready(); result != CUDA_SUCCESS) return result;
  return Modules::Unload(Bits(module));
}

// Whole modules are loaded when they are asked for; what the runtime facade delays, it delays
// itself.
CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode* mode) {
  if (const CUresult result = Ready(); result != CUDA_SUCCESS) return result;
  if (mode == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *mode = CU_MODULE_EAGER_LOADING;
  return CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  if (const CUresult result = Ready(); result != CUDA_SUCCESS) return result;
  if (function == nullptr || name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  uint64_t value = 0;
  const CUresult result = Modules::FindFunction(Bits(module), name, &value);
  if (result == CUDA_SUCCESS) *function = reinterpret_cast<CUfunction>(value);
  return result;
}

CUresult cuModuleGetGlobal_v2(CUdeviceptr* address, size_t* bytes, CUmodule module,
                              const char* name) {
  if (const CUresult result = Ready(); result != CUDA_SUCCESS) return result;
  if (name == nullptr || (address == nullptr && bytes == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  return Modules::FindVariable(Bits(module), name, address, bytes);
}

// Both enumerations ask the worker for the names: the client does not read images.
CUresult cuModuleGetFunctionCount(unsigned* count, CUmodule module) {
  if (const CUresult result = Ready(); result != CUDA_SUCCESS) return result;
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::vector<std::string> names;
  const CUresult result = Modules::FunctionNames(Bits(module), &names);
  if (result == CUDA_SUCCESS) *count = static_cast<unsigned>(names.size());
  return result;
}

CUresult cuModuleEnumerateFunctions(CUfunction* functions, unsigned capacity, CUmodule module) {
  if (const CUresult result = Ready(); result != CUDA_SUCCESS) return result;
  if (functions == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::vector<std::string> names;
  CUresult result = Modules::FunctionNames(Bits(module), &names);
  for (unsigned i = 0; i < capacity && i < names.size() && result == CUDA_SUCCESS; ++i) {
    result = local::cuModuleGetFunction(&functions[i], module, names[i].c_str());
  }
  return result;
}

// --- functions -----------------------------------------------------------------------------------

// Attributes were fetched with the function, so that occupancy queries cost no round trip.
CUresult cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction program) {
  Function* function = nullptr;
  if (const CUresult result = shim::FindFunction(program, &function); result != CUDA_SUCCESS)
    return result;
  if (value == nullptr || attribute < 0 || attribute >= CU_FUNC_ATTRIBUTE_MAX)
    return CUDA_ERROR_INVALID_VALUE;
  const base::MutexLock lock(&function->attributes_mutex);
  *value = function->info.attributes[attribute];
  return CUDA_SUCCESS;
}

// A round trip: the driver may refuse the value, and only an accepted value is remembered.
CUresult cuFuncSetAttribute(CUfunction program, CUfunction_attribute attribute, int value) {
  Function* function = nullptr;
  uint64_t function_value = 0;
  if (const CUresult result = shim::FindFunction(program, &function, &function_value);
      result != CUDA_SUCCESS) {
    return result;
  }
  if (attribute < 0 || attribute >= CU_FUNC_ATTRIBUTE_MAX) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = shim::Call<ipc::Op::cuFuncSetAttribute>(
      function->wire, reinterpret_cast<CUfunction>(function_value), attribute, value);
  if (result != CUDA_SUCCESS) return result;
  const base::MutexLock lock(&function->attributes_mutex);
  function->info.attributes[attribute] = value;
  shim::ForgetKnownLaunches();
  return CUDA_SUCCESS;
}

// A hint, which the driver may ignore: queued, without an answer.
CUresult cuFuncSetCacheConfig(CUfunction program, CUfunc_cache config) {
  Function* function = nullptr;
  uint64_t value = 0;
  if (const CUresult result = shim::FindFunction(program, &function, &value);
      result != CUDA_SUCCESS) {
    return result;
  }
  return shim::Post<ipc::Op::cuFuncSetCacheConfig>(function->wire,
                                                   reinterpret_cast<CUfunction>(value), config);
}

CUresult cuFuncSetSharedMemConfig(CUfunction program, CUsharedconfig config) {
  Function* function = nullptr;
  uint64_t value = 0;
  if (const CUresult result = shim::FindFunction(program, &function, &value);
      result != CUDA_SUCCESS) {
    return result;
  }
  return shim::Post<ipc::Op::cuFuncSetSharedMemConfig>(function->wire,
                                                       reinterpret_cast<CUfunction>(value), config);
}

CUresult cuFuncGetModule(CUmodule* module, CUfunction program) {
  Function* function = nullptr;
  if (const CUresult result = shim::FindFunction(program, &function); result != CUDA_SUCCESS)
    return result;
  if (module == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *module = reinterpret_cast<CUmodule>(function->module);
  return CUDA_SUCCESS;
}

// The name lives as long as the function, so the program gets a pointer to it.
CUresult cuFuncGetName(const char** name, CUfunction program) {
  Function* function = nullptr;
  if (const CUresult result = shim::FindFunction(program, &function); result != CUDA_SUCCESS)
    return result;
  if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *name = function->name.c_str();
  return CUDA_SUCCESS;
}

CUresult cuFuncGetParamInfo(CUfunction program, size_t index, size_t* offset, size_t* bytes) {
  Function* function = nullptr;
  if (const CUresult result = shim::FindFunction(program, &function); result != CUDA_SUCCESS)
    return result;
  if (offset == nullptr || index >= function->params.size()) return CUDA_ERROR_INVALID_VALUE;
  *offset = function->params[index].offset;
  if (bytes != nullptr) *bytes = function->params[index].bytes;
  return CUDA_SUCCESS;
}

// A module is loaded as a whole, so a function that the client knows is loaded.
CUresult cuFuncIsLoaded(CUfunctionLoadingState* state, CUfunction program) {
  Function* function = nullptr;
  if (const CUresult result = shim::FindFunction(program, &function); result != CUDA_SUCCESS)
    return result;
  if (state == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *state = CU_FUNCTION_LOADING_STATE_LOADED;
  return CUDA_SUCCESS;
}

CUresult cuFuncLoad(CUfunction program) {
  Function* function = nullptr;
  return shim::FindFunction(program, &function);
}

}  // namespace local
