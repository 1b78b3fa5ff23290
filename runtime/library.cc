// Libraries of device code, forwarded to the driver, which has the same notion.
#include "runtime/library.h"

#include <unordered_set>
#include <vector>

#include "base/mutex.h"
#include "runtime/api.h"
#include "runtime/context.h"
#include "runtime/driver.h"
#include "runtime/registration.h"

namespace runtime {
namespace {

// Kernels handed out, so that a stray pointer given to a launch is refused instead of followed.
class LibraryKernels {
 public:
  void Add(CUkernel kernel) {
    const base::MutexLock lock(&mutex_);
    kernels_.insert(kernel);
  }
  bool Contains(const void* kernel) {
    const base::MutexLock lock(&mutex_);
    return kernels_.count(kernel) != 0;
  }

 private:
  base::Mutex mutex_;
  std::unordered_set<const void*> kernels_ GUARDED_BY(mutex_);
};

LibraryKernels& Kernels() {
  static LibraryKernels* const kernels = new LibraryKernels;
  return *kernels;
}

}  // namespace

cudaError_t FindLibraryFunction(const void* kernel, CUfunction* function) {
  if (kernel == nullptr || !Kernels().Contains(kernel)) return cudaErrorInvalidDeviceFunction;
  return Driver().cuKernelGetFunction(function, static_cast<CUkernel>(const_cast<void*>(kernel)));
}

namespace api {

cudaError_t cudaLibraryGetKernel(cudaKernel_t* kernel, cudaLibrary_t library, const char* name) {
  const cudaError_t error = Driver().cuLibraryGetKernel(kernel, library, name);
  if (error == cudaSuccess) Kernels().Add(*kernel);
  return error;
}

cudaError_t cudaLibraryEnumerateKernels(cudaKernel_t* kernels, unsigned count,
                                        cudaLibrary_t library) {
  unsigned total = 0;
  cudaError_t error = Driver().cuLibraryGetKernelCount(&total, library);
  if (error == cudaSuccess) error = Driver().cuLibraryEnumerateKernels(kernels, count, library);
  if (error != cudaSuccess) return error;
  for (unsigned i = 0; i < count && i < total; ++i) Kernels().Add(kernels[i]);
  return cudaSuccess;
}

// Works for kernels of libraries. Those of the program itself have a function per context, so the
// attribute is set where that function is.
cudaError_t cudaKernelSetAttributeForDevice(cudaKernel_t kernel, cudaFuncAttribute attribute,
                                            int value, int device) {
  const CUfunction_attribute driver_attribute = static_cast<CUfunction_attribute>(attribute);
  if (!IsKernelHandle(kernel)) {
    if (!Kernels().Contains(kernel)) return cudaErrorInvalidResourceHandle;
    return Driver().cuKernelSetAttribute(driver_attribute, value, kernel, device);
  }
  int current = 0;
  cudaError_t error = CurrentDevice(&current);
  if (error == cudaSuccess && device != current) error = UseDevice(device);
  CUfunction function = nullptr;
  if (error == cudaSuccess) error = reinterpret_cast<Kernel*>(kernel)->Function(&function);
  if (error == cudaSuccess) error = Driver().cuFuncSetAttribute(function, driver_attribute, value);
  if (device != current) UseDevice(current);
  return error;
}

}  // namespace api
}  // namespace runtime
