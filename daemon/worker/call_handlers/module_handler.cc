#include "daemon/worker/call_handlers/module_handler.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/worker/reaper.h"

namespace worker {
namespace {

constexpr unsigned kJitOptionsMax = 32;
constexpr unsigned kLaunchAttributesMax = 16;

// Options whose value is a number. The rest are pointers of the client's process.
bool IsPlainOption(CUjit_option option) {
  switch (option) {
    case CU_JIT_MAX_REGISTERS:
    case CU_JIT_THREADS_PER_BLOCK:
    case CU_JIT_OPTIMIZATION_LEVEL:
    case CU_JIT_TARGET:
    case CU_JIT_FALLBACK_STRATEGY:
    case CU_JIT_GENERATE_DEBUG_INFO:
    case CU_JIT_LOG_VERBOSE:
    case CU_JIT_GENERATE_LINE_INFO:
    case CU_JIT_CACHE_MODE:
    case CU_JIT_POSITION_INDEPENDENT_CODE:
    case CU_JIT_MIN_CTA_PER_SM:
    case CU_JIT_MAX_THREADS_PER_BLOCK:
      return true;
    default:
      return false;
  }
}

// Where a call's two logs go; null or empty: nowhere.
struct Logs {
  char* info;
  unsigned info_bytes;
  char* error;
  unsigned error_bytes;
};

class JitOptions {
 public:
  // REQUIRES: count <= kJitOptionsMax.
  JitOptions(const CUjit_option* options, const uint64_t* values, unsigned count,
             const Logs& logs) {
    for (unsigned i = 0; i < count; ++i) {
      if (IsPlainOption(options[i])) Add(options[i], values[i]);
    }
    AddLog(CU_JIT_INFO_LOG_BUFFER, logs.info, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, logs.info_bytes);
    AddLog(CU_JIT_ERROR_LOG_BUFFER, logs.error, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
           logs.error_bytes);
  }
  unsigned count() const { return count_; }
  CUjit_option* names() { return names_.data(); }
  void** values() { return values_.data(); }

 private:
  void Add(CUjit_option name, uint64_t value) {
    names_[count_] = name;
    values_[count_++] = reinterpret_cast<void*>(value);
  }
  void AddLog(CUjit_option buffer, char* log, CUjit_option size, unsigned bytes) {
    if (log == nullptr || bytes == 0) return;
    Add(buffer, reinterpret_cast<uint64_t>(log));
    Add(size, bytes);
  }

  std::array<CUjit_option, kJitOptionsMax + 4> names_;
  std::array<void*, kJitOptionsMax + 4> values_;
  unsigned count_ = 0;
};

}  // namespace

ModuleHandler::ModuleHandler(Holdings* held, HandleMap* handles, ipc::SessionPage* page)
    : environment_(held->environment),
      driver_(*held->environment.driver),
      held_(*held),
      handles_(*handles),
      page_(*page) {}

CUresult ModuleHandler::HasModule(const ipc::ModuleHash* hash, int* known) {
  *known = SharedModuleCache().Find(*hash) != nullptr;
  return CUDA_SUCCESS;
}

CUresult ModuleHandler::ModuleBytes(const ipc::ModuleHash* hash, uint64_t offset,
                                    uint64_t total_bytes, const void* bytes, size_t count) {
  const std::byte* const piece = static_cast<const std::byte*>(bytes);
  const CUresult appended = assembly_.AppendUntrusted(*hash, total_bytes, offset, {piece, count});
  if (appended != CUDA_SUCCESS) return appended;
  if (!assembly_.complete()) return CUDA_SUCCESS;
  return SharedModuleCache().Add(*hash, assembly_.Release()) ? CUDA_SUCCESS
                                                             : CUDA_ERROR_INVALID_IMAGE;
}

CUresult ModuleHandler::LoadModule(CUmodule* module, const ipc::ModuleHash* hash,
                                   const CUjit_option* options, const uint64_t* option_values,
                                   unsigned option_count, char* info_log, unsigned info_log_bytes,
                                   char* error_log, unsigned error_log_bytes) {
  const ModuleImage image = SharedModuleCache().Find(*hash);
  if (image == nullptr) return CUDA_ERROR_INVALID_IMAGE;
  if (option_count > kJitOptionsMax) return CUDA_ERROR_INVALID_VALUE;
  JitOptions jit(options, option_values, option_count,
                 {info_log, info_log_bytes, error_log, error_log_bytes});
  const CUresult result =
      driver_.cuModuleLoadDataEx(module, image->data(), jit.count(), jit.names(), jit.values());
  if (result == CUDA_SUCCESS) {
    states_[*module] = StateOfModule(*image);
    images_.Add(*module, *hash);
    PublishStates();
  }
  return result;
}

CUresult ModuleHandler::LinkImages(const ipc::LinkInput* inputs, unsigned count,
                                   const CUjit_option* options, const uint64_t* option_values,
                                   unsigned option_count, ipc::ModuleHash* linked,
                                   uint64_t* linked_bytes, char* info_log, unsigned info_log_bytes,
                                   char* error_log, unsigned error_log_bytes) {
  if (option_count > kJitOptionsMax) return CUDA_ERROR_INVALID_VALUE;
  JitOptions jit(options, option_values, option_count,
                 {info_log, info_log_bytes, error_log, error_log_bytes});
  CUlinkState link = nullptr;
  CUresult result = driver_.cuLinkCreate_v2(jit.count(), jit.names(), jit.values(), &link);
  if (result != CUDA_SUCCESS) return result;
  for (unsigned i = 0; i < count && result == CUDA_SUCCESS; ++i) {
    const ModuleImage image = SharedModuleCache().Find(inputs[i].hash);
    if (image == nullptr) {
      result = CUDA_ERROR_INVALID_IMAGE;
      break;
    }
    const std::string name(inputs[i].name, strnlen(inputs[i].name, sizeof inputs[i].name));
    const CUjitInputType kind = static_cast<CUjitInputType>(inputs[i].kind);
    void* const bytes = const_cast<std::byte*>(image->data());
    // Without the zero that the cache added: a text brought its own.
    result = driver_.cuLinkAddData_v2(link, kind, bytes, image->size() - 1, name.c_str(), 0,
                                      nullptr, nullptr);
  }
  void* whole = nullptr;
  size_t whole_bytes = 0;
  if (result == CUDA_SUCCESS) result = driver_.cuLinkComplete(link, &whole, &whole_bytes);
  if (result == CUDA_SUCCESS) {
    *linked = SharedModuleCache().AddMade({static_cast<const std::byte*>(whole), whole_bytes});
    *linked_bytes = whole_bytes;
  }
  driver_.cuLinkDestroy(link);
  return result;
}

CUresult ModuleHandler::ImageBytes(const ipc::ModuleHash* hash, uint64_t offset, void* bytes,
                                   size_t count) {
  const ModuleImage image = SharedModuleCache().Find(*hash);
  if (image == nullptr || offset > image->size() || count > image->size() - offset) {
    return CUDA_ERROR_INVALID_IMAGE;
  }
  std::memcpy(bytes, image->data() + offset, count);
  return CUDA_SUCCESS;
}

// A module whose image could not be looked into counts as one with state.
bool ModuleHandler::AreStateless() const {
  return std::all_of(states_.begin(), states_.end(),
                     [](const auto& entry) { return entry.second == ModuleState::kNone; });
}

void ModuleHandler::PublishStates() {
  uint32_t bits = 0;
  for (const auto& [module, state] : states_) {
    if (state == ModuleState::kHeld) bits |= ipc::kModuleState;
    if (state == ModuleState::kUnknown) bits |= ipc::kUnknownImage;
  }
  std::atomic<uint32_t>& obstacles = page_.obstacles;
  obstacles.fetch_or(bits);
  obstacles.fetch_and(~(ipc::kModuleState | ipc::kUnknownImage) | bits);
}

// The module's functions end with it: a stale name must not reach the driver.
CUresult ModuleHandler::UnloadModule(CUmodule module) {
  handles_.ReleaseIf(ipc::HandleKind::kFunction, [&](void* handle) {
    const auto it = modules_of_functions_.find(static_cast<CUfunction>(handle));
    return it != modules_of_functions_.end() && it->second == module;
  });
  absl::erase_if(modules_of_functions_,
                 [module](const auto& entry) { return entry.second == module; });
  held_.addresses.ForgetModule(module);
  states_.erase(module);
  images_.Remove(module);
  PublishStates();
  Later(environment_, [&driver = driver_, module] { driver.cuModuleUnload(module); });
  return CUDA_SUCCESS;
}

void ModuleHandler::Destroy() {
  handles_.Drain(ipc::HandleKind::kFunction, [](void*) {});
  modules_of_functions_.clear();
  const Environment& environment = environment_;
  handles_.Drain(ipc::HandleKind::kModule, [&environment](void* handle) {
    Later(environment, [&driver = *environment.driver, module = static_cast<CUmodule>(handle)] {
      driver.cuModuleUnload(module);
    });
  });
  held_.addresses.ForgetAll();
  states_.clear();
  images_.Clear();
}

CUresult ModuleHandler::GetFunction(CUfunction* function, CUmodule module, const char* name,
                                    ipc::FunctionInfo* info, ipc::ParamLayout* params,
                                    unsigned params_max) {
  const CUresult result = driver_.cuModuleGetFunction(function, module, name);
  if (result != CUDA_SUCCESS) return result;
  modules_of_functions_[*function] = module;
  for (int i = 0; i < CU_FUNC_ATTRIBUTE_MAX; ++i) {
    int value = 0;
    const CUfunction_attribute attribute = static_cast<CUfunction_attribute>(i);
    if (driver_.cuFuncGetAttribute(&value, attribute, *function) == CUDA_SUCCESS) {
      info->attributes[i] = value;
    }
  }
  size_t offset = 0, bytes = 0;
  while (driver_.cuFuncGetParamInfo(*function, info->params, &offset, &bytes) == CUDA_SUCCESS) {
    const ipc::ParamLayout layout{static_cast<uint32_t>(offset), static_cast<uint32_t>(bytes)};
    if (info->params < params_max) params[info->params] = layout;
    info->param_bytes = std::max(info->param_bytes, layout.offset + layout.bytes);
    ++info->params;
  }
  return CUDA_SUCCESS;
}

CUresult ModuleHandler::GetGlobal(CUdeviceptr* address, size_t* bytes, CUmodule module,
                                  const char* name) {
  const CUresult result = driver_.cuModuleGetGlobal_v2(address, bytes, module, name);
  if (result == CUDA_SUCCESS) held_.addresses.AddVariable(module, *address, *bytes);
  return result;
}

CUresult ModuleHandler::FunctionNames(CUmodule module, unsigned* count, char* names,
                                      unsigned names_bytes) {
  CUresult result = driver_.cuModuleGetFunctionCount(count, module);
  if (result != CUDA_SUCCESS) return result;
  std::vector<CUfunction> functions(*count);
  result = driver_.cuModuleEnumerateFunctions(functions.data(), *count, module);
  if (result != CUDA_SUCCESS) return result;
  unsigned used = 0;
  for (CUfunction function : functions) {
    const char* name = nullptr;
    if (driver_.cuFuncGetName(&name, function) != CUDA_SUCCESS) continue;
    const size_t bytes = std::strlen(name) + 1;
    if (bytes > names_bytes - used) break;
    std::memcpy(names + used, name, bytes);
    used += static_cast<unsigned>(bytes);
  }
  std::memset(names + used, 0, names_bytes - used);
  return CUDA_SUCCESS;
}

CUresult ModuleHandler::Launch(CUfunction function, unsigned grid_x, unsigned grid_y,
                               unsigned grid_z, unsigned block_x, unsigned block_y,
                               unsigned block_z, unsigned shared_bytes, CUstream stream,
                               const ipc::LaunchAttribute* attributes, unsigned attribute_count,
                               const void* params, unsigned param_bytes) {
  if (described_ != nullptr) {
    if (attribute_count != 0) return CUDA_ERROR_NOT_SUPPORTED;
    const KernelLaunch launch = {
        function,   {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared_bytes, params,
        param_bytes};
    *described_ = LaunchSource::Described{launch, stream};
    return CUDA_SUCCESS;
  }
  if (attribute_count > kLaunchAttributesMax) return CUDA_ERROR_INVALID_VALUE;
  size_t bytes = param_bytes;
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, const_cast<void*>(params),
                   CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END};
  void** const packed = param_bytes == 0 ? nullptr : extra;
  if (attribute_count == 0) {
    return driver_.cuLaunchKernel(function, grid_x, grid_y, grid_z, block_x, block_y, block_z,
                                  shared_bytes, stream, nullptr, packed);
  }
  std::array<CUlaunchAttribute, kLaunchAttributesMax> driver_attributes{};
  for (unsigned i = 0; i < attribute_count; ++i) {
    if (!ipc::IsLaunchAttribute(attributes[i].id)) return CUDA_ERROR_NOT_SUPPORTED;
    driver_attributes[i].id = static_cast<CUlaunchAttributeID>(attributes[i].id);
    std::memcpy(&driver_attributes[i].value, attributes[i].value, sizeof attributes[i].value);
  }
  CUlaunchConfig config{};
  config.gridDimX = grid_x;
  config.gridDimY = grid_y;
  config.gridDimZ = grid_z;
  config.blockDimX = block_x;
  config.blockDimY = block_y;
  config.blockDimZ = block_z;
  config.sharedMemBytes = shared_bytes;
  config.hStream = stream;
  config.attrs = driver_attributes.data();
  config.numAttrs = attribute_count;
  return driver_.cuLaunchKernelEx(&config, function, nullptr, packed);
}

}  // namespace worker
