#include "tests/shim/fake_modules.h"

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <utility>

#include "tests/shim/fake_driver.h"

namespace shim_test {
namespace {

// --- modules -------------------------------------------------------------------------------------

// Where a call's logs go.
struct Logs {
  char* info = nullptr;
  size_t info_bytes = 0;
  char* error = nullptr;
  size_t error_bytes = 0;
};

Logs LogsOf(unsigned count, const CUjit_option* options, void* const* values) {
  Logs logs;
  for (unsigned i = 0; i < count; ++i) {
    void* const value = values[i];
    if (options[i] == CU_JIT_INFO_LOG_BUFFER) logs.info = static_cast<char*>(value);
    if (options[i] == CU_JIT_ERROR_LOG_BUFFER) logs.error = static_cast<char*>(value);
    if (options[i] == CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES)
      logs.info_bytes = reinterpret_cast<size_t>(value);
    if (options[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES)
      logs.error_bytes = reinterpret_cast<size_t>(value);
  }
  return logs;
}

CUresult LoadModule(CUmodule* module, const void*, unsigned count, CUjit_option* options,
                    void** values) {
  const Logs logs = LogsOf(count, options, values);
  if (logs.info != nullptr) std::snprintf(logs.info, logs.info_bytes, "info");
  const CUresult fault = TakeFault("cuModuleLoadDataEx");
  if (fault != CUDA_SUCCESS) {
    if (logs.error != nullptr) std::snprintf(logs.error, logs.error_bytes, "line 3: bad");
    return fault;
  }
  *module = NewHandle<CUmodule>();
  return CUDA_SUCCESS;
}

CUresult FindVariable(CUdeviceptr* address, size_t* bytes, CUmodule, const char*) {
  *address = 0x3000'0000'0000;
  *bytes = 64;
  return CUDA_SUCCESS;
}

// --- links ---------------------------------------------------------------------------------------

struct Link {
  Logs logs;
  std::string name;
  std::vector<std::byte> image;
};

Link* LinkOf(CUlinkState state) { return reinterpret_cast<Link*>(state); }

CUresult CreateLink(unsigned count, CUjit_option* options, void** values, CUlinkState* state) {
  *state = reinterpret_cast<CUlinkState>(new Link{LogsOf(count, options, values), {}, {}});
  return CUDA_SUCCESS;
}
CUresult AddToLink(CUlinkState state, CUjitInputType, void* data, size_t bytes, const char* name,
                   unsigned, CUjit_option*, void**) {
  const std::byte* const first = static_cast<const std::byte*>(data);
  LinkOf(state)->image.assign(first, first + bytes);
  LinkOf(state)->name = name;
  return CUDA_SUCCESS;
}
CUresult CompleteLink(CUlinkState state, void** image, size_t* bytes) {
  Link& link = *LinkOf(state);
  const CUresult fault = TakeFault("cuLinkComplete");
  if (fault != CUDA_SUCCESS && link.logs.error != nullptr)
    std::snprintf(link.logs.error, link.logs.error_bytes, "%s: bad", link.name.c_str());
  *image = link.image.data();
  *bytes = link.image.size();
  return fault;
}
CUresult DestroyLink(CUlinkState state) {
  delete LinkOf(state);
  return CUDA_SUCCESS;
}

// --- functions -----------------------------------------------------------------------------------

CUresult FindFunction(CUfunction* function, CUmodule, const char* name) {
  if (const CUresult fault = TakeFault("cuModuleGetFunction"); fault != CUDA_SUCCESS) return fault;
  *function = FakeModules::Process().AddFunction(name);
  return CUDA_SUCCESS;
}
CUresult CountFunctions(unsigned* count, CUmodule) {
  *count = 2;
  return CUDA_SUCCESS;
}
CUresult ListFunctions(CUfunction* functions, unsigned count, CUmodule) {
  for (unsigned i = 0; i < count; ++i)
    functions[i] = FakeModules::Process().AddFunction(i == 0 ? "first" : "second");
  return CUDA_SUCCESS;
}
CUresult NameFunction(const char** name, CUfunction function) {
  *name = FakeModules::Process().NameOf(function);
  return *name == nullptr ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
}
CUresult FunctionAttribute(int* value, CUfunction_attribute attribute, CUfunction) {
  *value = 0;
  if (attribute == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK) *value = 512;
  if (attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) *value = 48 << 10;
  return CUDA_SUCCESS;
}
CUresult SetFunctionAttribute(CUfunction, CUfunction_attribute, int) { return CUDA_SUCCESS; }
CUresult FunctionParam(CUfunction, size_t index, size_t* offset, size_t* bytes) {
  static constexpr size_t kOffsets[] = {0, 8, 16}, kBytes[] = {8, 4, 3};
  if (index >= std::size(kOffsets)) return CUDA_ERROR_INVALID_VALUE;
  *offset = kOffsets[index];
  *bytes = kBytes[index];
  return CUDA_SUCCESS;
}

// --- launches ------------------------------------------------------------------------------------

CUresult LaunchWith(const CUlaunchConfig* config, CUfunction function, void**, void** packed) {
  FakeModules& modules = FakeModules::Process();
  const char* const name = modules.NameOf(function);
  if (name == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  SeenLaunch launch{name,
                    {config->gridDimX, config->gridDimY, config->gridDimZ},
                    {config->blockDimX, config->blockDimY, config->blockDimZ},
                    config->sharedMemBytes,
                    config->hStream,
                    {},
                    {}};
  launch.attributes.assign(config->attrs, config->attrs + config->numAttrs);
  if (packed != nullptr) {  // as the worker packs them: the block, then its size
    const std::byte* const block = static_cast<const std::byte*>(packed[1]);
    launch.params.assign(block, block + *static_cast<const size_t*>(packed[3]));
  }
  modules.AddLaunch(std::move(launch));
  return CUDA_SUCCESS;
}

CUresult Launch(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                CUstream stream, void** params, void** packed) {
  CUlaunchConfig config{};
  config.gridDimX = grid_x;
  config.gridDimY = grid_y;
  config.gridDimZ = grid_z;
  config.blockDimX = block_x;
  config.blockDimY = block_y;
  config.blockDimZ = block_z;
  config.sharedMemBytes = shared_bytes;
  config.hStream = stream;
  return LaunchWith(&config, function, params, packed);
}

}  // namespace

FakeModules& FakeModules::Process() {
  static FakeModules* const modules = new FakeModules;
  return *modules;
}

CUfunction FakeModules::AddFunction(const char* name) {
  const base::MutexLock lock(&mutex_);
  const CUfunction function = NewHandle<CUfunction>();
  names_[function] = name;
  return function;
}

const char* FakeModules::NameOf(CUfunction function) {
  const base::MutexLock lock(&mutex_);
  const std::map<CUfunction, std::string>::const_iterator found = names_.find(function);
  return found == names_.end() ? nullptr : found->second.c_str();
}

void FakeModules::AddLaunch(SeenLaunch launch) {
  const base::MutexLock lock(&mutex_);
  launches_.push_back(std::move(launch));
}

std::vector<SeenLaunch> FakeModules::launches() {
  const base::MutexLock lock(&mutex_);
  return launches_;
}

void AddModules(ipc::DriverTable* table) {
  table->cuModuleLoadDataEx = &LoadModule;
  table->cuModuleGetGlobal_v2 = &FindVariable;
  table->cuLinkCreate_v2 = &CreateLink;
  table->cuLinkAddData_v2 = &AddToLink;
  table->cuLinkComplete = &CompleteLink;
  table->cuLinkDestroy = &DestroyLink;
  table->cuModuleGetFunction = &FindFunction;
  table->cuModuleGetFunctionCount = &CountFunctions;
  table->cuModuleEnumerateFunctions = &ListFunctions;
  table->cuFuncGetName = &NameFunction;
  table->cuFuncGetAttribute = &FunctionAttribute;
  table->cuFuncSetAttribute = &SetFunctionAttribute;
  table->cuFuncGetParamInfo = &FunctionParam;
  table->cuLaunchKernel = &Launch;
  table->cuLaunchKernelEx = &LaunchWith;
}

}  // namespace shim_test
