#include "runtime/registration.h"

#include <pthread.h>

#include <deque>
#include <unordered_map>
#include <unordered_set>

#include "base/find.h"
#include "base/mutex.h"
#include "runtime/api.h"
#include "runtime/context.h"
#include "runtime/driver.h"
#include "runtime/program_image.h"
#include "runtime/refused.h"
#include "runtime/thread_state.h"

namespace runtime {

// The device code of one translation unit and the modules made of it.
class FatBinary {
 public:
  explicit FatBinary(const __fatBinC_Wrapper_t* wrapper) : wrapper_(wrapper) {}

  void AddKernel(const void* host, const char* name) { kernels_.emplace_back(this, host, name); }
  void AddVariable(const void* host, const char* name, size_t bytes, bool managed) {
    variables_.emplace_back(this, host, name, bytes, managed);
  }
  std::deque<Kernel>& kernels() { return kernels_; }
  std::deque<Variable>& variables() { return variables_; }

  // The module in the thread's context, loaded at the first call.
  cudaError_t Module(CUmodule* module);
  // REQUIRES: no thread loads it any more, so that it needs no lock.
  void Unload() NO_THREAD_SAFETY_ANALYSIS;

  // How much of the two lists is indexed; guarded by the registry's mutex.
  size_t kernels_indexed = 0;
  size_t variables_indexed = 0;

 private:
  struct Loaded {
    uint64_t context_key;
    CUmodule module;
  };

  const __fatBinC_Wrapper_t* const wrapper_;
  std::deque<Kernel> kernels_;  // addresses stay valid as the lists grow
  std::deque<Variable> variables_;
  base::Mutex load_mutex_;
  std::vector<Loaded> modules_ GUARDED_BY(load_mutex_);
};

namespace {

// A session's device has the variables of modules in the worker's memory alone.
bool IsShared(CUdeviceptr address) {
  unsigned managed = 0;
  CUpointer_attribute attribute = CU_POINTER_ATTRIBUTE_IS_MANAGED;
  void* value = &managed;
  return Driver().cuPointerGetAttributes(1, &attribute, &value, address) == CUDA_SUCCESS &&
         managed != 0;
}

constexpr char kManagedReason[] = "a __managed__ variable can't be shared by host and device here";

// All that is registered. Look-ups index what was registered since the last one.
class Registry {
 public:
  FatBinary* Add(const __fatBinC_Wrapper_t* wrapper) {
    const base::MutexLock lock(&mutex_);
    return pending_.emplace_back(new FatBinary(wrapper));
  }

  void AddKernel(FatBinary* binary, const void* host, const char* name) {
    const base::MutexLock lock(&mutex_);
    MakePending(binary);
    binary->AddKernel(host, name);
  }

  void AddVariable(FatBinary* binary, const void* host, const char* name, size_t bytes,
                   bool managed) {
    const base::MutexLock lock(&mutex_);
    MakePending(binary);
    binary->AddVariable(host, name, bytes, managed);
  }

  void Remove(FatBinary* binary) {
    const base::MutexLock lock(&mutex_);
    IndexPending();
    for (Kernel& kernel : binary->kernels()) {
      Erase(&kernels_, &kernel);
      handles_.erase(&kernel);
    }
    for (Variable& variable : binary->variables()) Erase(&variables_, &variable);
    binary->Unload();
    delete binary;
  }

  Kernel* FindKernel(const void* host) {
    const base::MutexLock lock(&mutex_);
    IndexPending();
    return base::FindOr(kernels_, host, nullptr);
  }

  Variable* FindVariable(const void* host) {
    const base::MutexLock lock(&mutex_);
    IndexPending();
    if (Variable* const* const found = base::FindOrNull(variables_, host)) return *found;
    for (const auto& [where, variable] : variables_) {
      if (host != nullptr && variable->SharedAddress() == host) return variable;
    }
    return nullptr;
  }

  const void* FindHost(CUfunction function) {
    const base::MutexLock lock(&mutex_);
    for (const auto& [host, kernel] : kernels_) {
      if (kernel->IsBoundTo(function)) return host;
    }
    return nullptr;
  }

  // Around a fork, by two functions: a pair that the analysis does not see.
  void Lock() NO_THREAD_SAFETY_ANALYSIS { mutex_.Lock(); }
  void Unlock() NO_THREAD_SAFETY_ANALYSIS { mutex_.Unlock(); }

  bool IsKernelHandle(const void* handle) {
    const base::MutexLock lock(&mutex_);
    return handles_.count(handle) != 0;
  }

  void NoteHandle(const Kernel* kernel) {
    const base::MutexLock lock(&mutex_);
    handles_.insert(kernel);
  }

 private:
  // Several translation units may hold the same inline kernel: one host address, several fat
  // binaries.
  template <class T>
  using Index = std::unordered_multimap<const void*, T*>;

  template <class T>
  static void Erase(Index<T>* index, T* entry) {
    const auto range = index->equal_range(entry->host());
    for (auto at = range.first; at != range.second; ++at) {
      if (at->second != entry) continue;
      index->erase(at);
      return;
    }
  }

  void MakePending(FatBinary* binary) REQUIRES(mutex_) {
    if (pending_.empty() || pending_.back() != binary) pending_.push_back(binary);
  }

  void IndexPending() REQUIRES(mutex_) {
    for (FatBinary* binary : pending_) {
      std::deque<Kernel>& kernels = binary->kernels();
      for (size_t& i = binary->kernels_indexed; i < kernels.size(); ++i) {
        kernels_.emplace(kernels[i].host(), &kernels[i]);
      }
      std::deque<Variable>& variables = binary->variables();
      for (size_t& i = binary->variables_indexed; i < variables.size(); ++i) {
        variables_.emplace(variables[i].host(), &variables[i]);
      }
    }
    pending_.clear();
  }

  base::Mutex mutex_;
  std::vector<FatBinary*> pending_ GUARDED_BY(mutex_);
  Index<Kernel> kernels_ GUARDED_BY(mutex_);
  Index<Variable> variables_ GUARDED_BY(mutex_);
  std::unordered_set<const void*> handles_ GUARDED_BY(mutex_);
};

// Never destroyed: libraries unregister while the process exits. A child that another thread forks
// may register and look up too, so nobody holds the registry during a fork.
Registry& TheRegistry() {
  static Registry* const registry = [] {
    pthread_atfork([] { TheRegistry().Lock(); }, [] { TheRegistry().Unlock(); },
                   [] { TheRegistry().Unlock(); });
    return new Registry;
  }();
  return *registry;
}

}  // namespace

cudaError_t FatBinary::Module(CUmodule* module) {
  const uint64_t key = Thread().context_key;
  const base::MutexLock lock(&load_mutex_);
  for (const Loaded& loaded : modules_) {
    if (loaded.context_key != key) continue;
    *module = loaded.module;
    return cudaSuccess;
  }
  const cudaError_t error = LoadProgramImage(*wrapper_, module);
  if (error == cudaSuccess) modules_.push_back({key, *module});
  return error;
}

// Modules of contexts that are gone went with them; a foreign context's are left to its owner.
void FatBinary::Unload() {
  if (modules_.empty() || Exiting()) return;
  CUcontext previous = nullptr;
  Driver().cuCtxGetCurrent(&previous);
  for (const Loaded& loaded : modules_) {
    const CUcontext context = LivePrimary(loaded.context_key);
    if (context == nullptr || Driver().cuCtxSetCurrent(context) != cudaSuccess) continue;
    Driver().cuModuleUnload(loaded.module);
  }
  Driver().cuCtxSetCurrent(previous);
}

Kernel::~Kernel() {
  for (const Binding* binding = bindings_.load(); binding != nullptr;) {
    const Binding* const next = binding->next;
    delete binding;
    binding = next;
  }
}

cudaError_t Kernel::Function(CUfunction* function) {
  const uint64_t key = Thread().context_key;
  Binding* const first = bindings_.load(std::memory_order_acquire);
  for (const Binding* binding = first; binding != nullptr; binding = binding->next) {
    if (binding->context_key != key) continue;
    *function = binding->function;
    return cudaSuccess;
  }
  CUmodule module = nullptr;
  cudaError_t error = owner_->Module(&module);
  if (error == cudaSuccess) error = Driver().cuModuleGetFunction(function, module, name_);
  if (error == cudaErrorSymbolNotFound) error = cudaErrorInvalidDeviceFunction;
  if (error != cudaSuccess) return error;
  Binding* const made = new Binding{key, *function, first};
  while (!bindings_.compare_exchange_weak(made->next, made, std::memory_order_release)) {
  }
  return cudaSuccess;
}

bool Kernel::IsBoundTo(CUfunction function) const {
  for (const Binding* binding = bindings_.load(std::memory_order_acquire); binding != nullptr;
       binding = binding->next) {
    if (binding->function == function) return true;
  }
  return false;
}

const void* Variable::SharedAddress() const {
  return managed_ ? *static_cast<void* const*>(host_) : nullptr;
}

cudaError_t Variable::Share() {
  CUdeviceptr address = 0;
  cudaError_t error = LoadDriver();
  if (error == cudaSuccess) error = UseContext();
  if (error == cudaSuccess) error = Address(&address);
  if (error != cudaSuccess) return error;
  *static_cast<void**>(const_cast<void*>(host_)) = reinterpret_cast<void*>(address);
  return cudaSuccess;
}

cudaError_t Variable::Address(CUdeviceptr* address) {
  CUmodule module = nullptr;
  cudaError_t error = owner_->Module(&module);
  if (error == cudaSuccess) error = Driver().cuModuleGetGlobal_v2(address, nullptr, module, name_);
  if (error == cudaSuccess && managed_ && !IsShared(*address)) return cudaErrorNotSupported;
  return error == cudaErrorSymbolNotFound ? cudaErrorInvalidSymbol : error;
}

Kernel* FindKernel(const void* host) { return TheRegistry().FindKernel(host); }
Variable* FindVariable(const void* host) { return TheRegistry().FindVariable(host); }
const void* FindHost(CUfunction function) { return TheRegistry().FindHost(function); }
bool IsKernelHandle(const void* handle) { return TheRegistry().IsKernelHandle(handle); }

namespace api {

void** __cudaRegisterFatBinary(void* wrapper) {
  return reinterpret_cast<void**>(
      TheRegistry().Add(static_cast<const __fatBinC_Wrapper_t*>(wrapper)));
}

void __cudaRegisterFatBinaryEnd(void**) {}

void __cudaUnregisterFatBinary(void** handle) {
  if (handle != nullptr) TheRegistry().Remove(reinterpret_cast<FatBinary*>(handle));
}

void __cudaRegisterFunction(void** handle, const char* host, char*, const char* name, int, uint3*,
                            uint3*, dim3*, dim3*, int*) {
  TheRegistry().AddKernel(reinterpret_cast<FatBinary*>(handle), host, name);
}

void __cudaRegisterVar(void** handle, char* host, char*, const char* name, int, size_t bytes, int,
                       int) {
  TheRegistry().AddVariable(reinterpret_cast<FatBinary*>(handle), host, name, bytes, false);
}

void __cudaRegisterManagedVar(void** handle, void** host, char*, const char* name, int,
                              size_t bytes, int, int) {
  TheRegistry().AddVariable(reinterpret_cast<FatBinary*>(handle), host, name, bytes, true);
}

// Host variables and tables of functions that device code may reach on systems with one page table
// for host and device: no device here has that, so there is nothing to note.
void __cudaRegisterHostVar(void**, const char*, char*, size_t) {}
void __cudaRegisterUnifiedTable(void**, const void*) {}

// Programs call this before they first touch a managed variable, and then follow the pointer that
// they registered. Where the variable can't be shared, say what is about to go wrong.
char __cudaInitModule(void** handle) {
  static std::atomic<bool> said = false;
  for (Variable& variable : reinterpret_cast<FatBinary*>(handle)->variables()) {
    if (variable.managed() && variable.Share() != cudaSuccess)
      RefuseAloud(variable.name(), kManagedReason, &said);
  }
  return 1;
}

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared_bytes,
                                     cudaStream_t stream) {
  Thread().configurations.push_back({grid, block, shared_bytes, stream});
  return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared_bytes,
                                       void* stream) {
  std::vector<LaunchConfiguration>& stack = Thread().configurations;
  if (stack.empty()) return cudaErrorMissingConfiguration;
  const LaunchConfiguration top = stack.back();
  stack.pop_back();
  *grid = top.grid;
  *block = top.block;
  *shared_bytes = top.shared_bytes;
  *static_cast<cudaStream_t*>(stream) = top.stream;
  return cudaSuccess;
}

cudaError_t __cudaGetKernel(cudaKernel_t* handle, const void* host) {
  Kernel* const kernel = runtime::FindKernel(host);
  if (kernel == nullptr) return cudaErrorInvalidDeviceFunction;
  TheRegistry().NoteHandle(kernel);
  *handle = reinterpret_cast<cudaKernel_t>(kernel);
  return cudaSuccess;
}

// The handle of a kernel in the program works in every runtime call that takes a kernel; it is no
// CUkernel, unlike those of cudaLibraryGetKernel.
cudaError_t cudaGetKernel(cudaKernel_t* handle, const void* host) {
  return handle == nullptr ? cudaErrorInvalidValue : api::__cudaGetKernel(handle, host);
}

}  // namespace api
}  // namespace runtime
