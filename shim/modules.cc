#include "shim/modules.h"

#include <algorithm>
#include <cstring>

#include "ipc/module_hash.h"
#include "shim/image.h"
#include "shim/proof_facts.h"
#include "shim/rebuild/images.h"
#include "shim/send.h"
#include "shim/stderr_once.h"

namespace shim {
namespace {

constexpr unsigned kLogBytesMax = 16u << 10;  // of each log: both fit one reply
constexpr unsigned kOwnLogBytes = 1u << 10;   // where the program gives no error log
constexpr unsigned kParamsAtOnce = 1024;
constexpr unsigned kNamesBytes = 48u << 10;

// Pieces of one image must arrive in order, so one thread at a time sends an image.
constinit base::Mutex upload_mutex ACQUIRED_BEFORE(lock_order::kSending);

bool HoldsPointer(CUjit_option option) {
  return option == CU_JIT_GLOBAL_SYMBOL_NAMES || option == CU_JIT_GLOBAL_SYMBOL_ADDRESSES ||
         option == CU_JIT_REFERENCED_KERNEL_NAMES || option == CU_JIT_REFERENCED_VARIABLE_NAMES ||
         option == CU_JIT_NEW_SM3X_OPT;
}

// CUDA returns the bytes of a log through the option's value, a pointer-sized slot of the program.
void SetFilled(void** filled, const char* log, unsigned bytes) {
  if (filled == nullptr) return;
  const size_t length = log == nullptr || bytes == 0 ? 0 : strnlen(log, bytes);
  *filled = reinterpret_cast<void*>(length);
}

// A program whose kernels the device can't run learns the code, which says little; the driver's
// words, where it has some, say what to do.
void SayWhy(std::string_view words) {
  static std::atomic<bool> said;
  if (!words.empty()) StderrOnce(said, {words});
}

// The function's layout and attributes, into a new object.
CUresult Fetch(uint64_t module_value, const Module& module, const char* name, uint64_t* value) {
  Function* const function = State::Process().functions.Create(value);
  if (function == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  function->name = name;
  function->module = module_value;
  function->context = module.context;
  function->wire = module.wire;
  function->params.resize(kParamsAtOnce);
  const GivenName given(*value);
  CUfunction delivered = nullptr;
  // A refusal and a failure both forget the name, which destroys the object.
  const CUresult result =
      Call<ipc::Op::GetFunction>(module.wire, &delivered, reinterpret_cast<CUmodule>(module_value),
                                 name, &function->info, function->params.data(), kParamsAtOnce);
  if (result != CUDA_SUCCESS) return result;
  function->params.resize(std::min(function->info.params, kParamsAtOnce));
  function->params.shrink_to_fit();
  bool sound = function->params.size() == function->info.params &&
               function->info.param_bytes <= ipc::limits::kKernelParamBytesMax;
  uint64_t dense_bytes = 0;
  for (const ipc::ParamLayout& param : function->params) {
    sound = sound && uint64_t{param.offset} + param.bytes <= function->info.param_bytes;
    if (param.offset == dense_bytes) dense_bytes += param.bytes;
  }
  function->params_are_dense = dense_bytes == function->info.param_bytes;
  if (!sound) State::Process().functions.Destroy(*value);
  return sound ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
}

}  // namespace

void JitOptions::TellFilled() const {
  SetFilled(info_log_filled, info_log, info_log_bytes);
  SetFilled(error_log_filled, error_log, error_log_bytes);
}

CUresult Modules::ReadOptions(unsigned count, const CUjit_option* options, void** values,
                              JitOptions* read) {
  if (count != 0 && (options == nullptr || values == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  for (unsigned i = 0; i < count; ++i) {
    const uint64_t value = reinterpret_cast<uint64_t>(values[i]);
    switch (options[i]) {
      case CU_JIT_INFO_LOG_BUFFER:
        read->info_log = static_cast<char*>(values[i]);
        break;
      case CU_JIT_ERROR_LOG_BUFFER:
        read->error_log = static_cast<char*>(values[i]);
        break;
      case CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES:
        read->info_log_bytes = std::min(static_cast<unsigned>(value), kLogBytesMax);
        read->info_log_filled = &values[i];
        break;
      case CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES:
        read->error_log_bytes = std::min(static_cast<unsigned>(value), kLogBytesMax);
        read->error_log_filled = &values[i];
        break;
      default:
        if (HoldsPointer(options[i])) return CUDA_ERROR_NOT_SUPPORTED;
        read->options.push_back(options[i]);
        read->values.push_back(value);
    }
  }
  if (read->info_log == nullptr) read->info_log_bytes = 0;
  if (read->error_log == nullptr) read->error_log_bytes = 0;
  return CUDA_SUCCESS;
}

CUresult Modules::Send(uint32_t wire, const ipc::ModuleHash& hash,
                       std::span<const std::byte> image) {
  const base::MutexLock lock(&upload_mutex);
  int known = 0;
  CUresult result = Call<ipc::Op::HasModule>(wire, &hash, &known);
  for (size_t at = 0; at < image.size() && result == CUDA_SUCCESS && known == 0;
       at += kImagePieceBytes) {
    const size_t bytes = std::min(kImagePieceBytes, image.size() - at);
    result = Post<ipc::Op::ModuleBytes>(wire, &hash, uint64_t{at}, uint64_t{image.size()},
                                        static_cast<const void*>(image.data() + at), bytes);
  }
  return result;
}

// What one worker knows of an image its successor does not.
CUresult Modules::Load(const Context& context, uint64_t context_value, const void* image,
                       JitOptions* options, uint64_t* value) {
  for (;;) {
    const uint32_t generation = Client::Process().pipeline().generation();
    const CUresult result = LoadOnce(context, context_value, image, options, value);
    if (result != CUDA_ERROR_INVALID_IMAGE ||
        generation == Client::Process().pipeline().generation())
      return result;
  }
}

CUresult Modules::LoadOnce(const Context& context, uint64_t context_value, const void* image,
                           JitOptions* options, uint64_t* value) {
  const std::span<const std::byte> bytes = FindImage(image);
  if (bytes.empty()) return image == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_IMAGE;
  const ipc::ModuleHash hash = ipc::HashOfModule(bytes);
  const std::shared_ptr<const ModuleBytes> kept = Images::Keep(hash, bytes);
  if (const CUresult result = Send(context.wire, hash, bytes); result != CUDA_SUCCESS)
    return result;
  Module* const module = State::Process().modules.Create(value);
  if (module == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  module->context = context_value;
  module->wire = context.wire;
  module->device = context.device;
  module->image = hash;
  const GivenName given(*value);
  CUmodule delivered = nullptr;
  // The driver explains a refused image in the error log. When the program passes no log, a buffer
  // here takes the explanation, for SayWhy().
  char own_log[kOwnLogBytes] = "";
  const bool own = options->error_log == nullptr;
  char* const error_log = own ? own_log : options->error_log;
  const unsigned error_log_bytes = own ? kOwnLogBytes : options->error_log_bytes;
  const CUresult result = Call<ipc::Op::LoadModule>(
      context.wire, &delivered, &hash, options->options.data(), options->values.data(),
      static_cast<unsigned>(options->options.size()), options->info_log, options->info_log_bytes,
      error_log, error_log_bytes);
  options->TellFilled();
  if (own && result == CUDA_ERROR_NO_BINARY_FOR_GPU)
    SayWhy({error_log, strnlen(error_log, error_log_bytes)});
  return result;
}

CUresult Modules::Unload(uint64_t value) {
  State& state = State::Process();
  Module* const module = state.modules.Find(value);
  if (module == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  // Before and after: a name may stand for another kernel at once, and a proof may look in between.
  ProofFacts::Changed();
  state.functions.ForEach([&](uint64_t function_value, const Function* function) {
    if (function->module == value) state.functions.Destroy(function_value);
  });
  ProofFacts::Changed();
  std::vector<std::pair<uint64_t, uint32_t>> pieces;  // their kernels are gone
  state.graph_pieces.ForEach([&](uint64_t piece, const GraphPiece* entry) {
    const base::MutexLock lock(&entry->mutex);
    const std::vector<uint64_t>& modules = entry->modules;
    if (std::find(modules.begin(), modules.end(), value) != modules.end())
      pieces.emplace_back(piece, entry->wire);
  });
  for (const auto& [piece, wire] : pieces)
    Post<ipc::Op::GraphEnd>(wire, reinterpret_cast<CUgraphExec>(piece));
  for (const Allocation& variable : state.variables.OfContext(value)) {
    Allocation removed;
    state.variables.Remove(variable.base, Allocation::Kind::kVariable, &removed);
  }
  return Post<ipc::Op::UnloadModule>(module->wire, reinterpret_cast<CUmodule>(value));
}

CUresult Modules::FindFunction(uint64_t module_value, const char* name, uint64_t* function) {
  Module* const module = State::Process().modules.Find(module_value);
  if (module == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const base::MutexLock lock(&module->mutex);
  const std::map<std::string, uint64_t, std::less<>>::const_iterator known =
      module->functions.find(std::string_view(name));
  if (known != module->functions.end()) {
    *function = known->second;
    return CUDA_SUCCESS;
  }
  const CUresult result = Fetch(module_value, *module, name, function);
  if (result == CUDA_SUCCESS) module->functions.emplace(name, *function);
  return result;
}

// The worker's answer is an address in the worker's context, and the session's kernels use the same
// address. It is remembered so that copies and queries know the variable as memory.
CUresult Modules::FindVariable(uint64_t module_value, const char* name, CUdeviceptr* address,
                               size_t* bytes) {
  Module* const module = State::Process().modules.Find(module_value);
  if (module == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  CUdeviceptr found = 0;
  size_t size = 0;
  const CUresult result = Call<ipc::Op::GetGlobal>(module->wire, &found, &size,
                                                   reinterpret_cast<CUmodule>(module_value), name);
  if (result != CUDA_SUCCESS) return result;
  {
    const base::MutexLock lock(&module->variables_mutex);
    const bool is_new = module->variables.try_emplace(name, KnownRanges::Range{found, size}).second;
    if (is_new) ProofFacts::Changed();
  }
  Allocation variable;
  variable.kind = Allocation::Kind::kVariable;
  variable.base = found;
  variable.bytes = size;
  variable.context = module_value;
  variable.device = module->device;
  State::Process().variables.Add(variable);
  if (address != nullptr) *address = found;
  if (bytes != nullptr) *bytes = size;
  return CUDA_SUCCESS;
}

CUresult Modules::FunctionNames(uint64_t module_value, std::vector<std::string>* names) {
  const Module* const module = State::Process().modules.Find(module_value);
  if (module == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  std::vector<char> text(kNamesBytes);
  unsigned count = 0;
  const CUresult result = Call<ipc::Op::FunctionNames>(
      module->wire, reinterpret_cast<CUmodule>(module_value), &count, text.data(), kNamesBytes);
  if (result != CUDA_SUCCESS) return result;
  const char* at = text.data();
  const char* const end = text.data() + text.size();
  while (names->size() < count && at < end && *at != '\0') {
    names->emplace_back(at, strnlen(at, static_cast<size_t>(end - at)));
    at += names->back().size() + 1;
  }
  return names->size() == count ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
}

}  // namespace shim
