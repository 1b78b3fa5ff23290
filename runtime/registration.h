// Device code inside a program: the calls that nvcc's output makes, and what they register.
//
// None of this is in a manual. The contracts here are read off the output of nvcc 13.0 (keep its
// intermediate files with -keep and look at *.cudafe1.stub.c) and off the toolkit's
// crt/host_runtime.h, crt/device_functions.h and fatbinary_section.h. No other file relies on them.
//
// When a program or library is loaded, each of its translation units with device code calls
//   __cudaRegisterFatBinary(wrapper)      -> a handle; wrapper is an __fatBinC_Wrapper_t
//   __cudaRegisterFunction, __cudaRegisterVar, __cudaRegisterManagedVar   for each kernel and
//   variable
//   __cudaRegisterFatBinaryEnd(handle)
//   and __cudaUnregisterFatBinary(handle) when it is unloaded or the process exits.
// Files of separable compilation do so together, once the last of them is loaded, with one wrapper
// (program_image.h).
// A framework registers tens of thousands of kernels this way while it is imported, most never
// used. So registering only notes pointers, which stay valid until the unregistration: no driver
// call, no copy. Host addresses are indexed at the first look-up, and a fat binary is loaded, once
// per context, when a kernel or variable in it is first used there.
//
// A launch is stub(args): it asks once for a handle (__cudaGetKernel), then for each launch takes
// what
// __cudaPushCallConfiguration left (__cudaPopCallConfiguration), and calls __cudaLaunchKernel. The
// handle is ours to choose: it is the address of a Kernel, so asking never fails for lack of a
// device.
//
// Thread safety: everything here is. Ownership: kernels and variables live until unregistration.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace runtime {

class FatBinary;

class Kernel {
 public:
  Kernel(FatBinary* owner, const void* host, const char* name)
      : owner_(owner), host_(host), name_(name) {}
  ~Kernel();

  const void* host() const { return host_; }
  const char* name() const { return name_; }

  // The driver's function for this kernel in the thread's context; loads the code if need be.
  // REQUIRES: UseContext() on this thread.
  cudaError_t Function(CUfunction* function);

  // True when Function() gave out `function` in some context.
  bool IsBoundTo(CUfunction function) const;

 private:
  // One per context in which the kernel was used; the list only grows.
  struct Binding {
    uint64_t context_key;
    CUfunction function;
    Binding* next;
  };

  FatBinary* const owner_;
  const void* const host_;
  const char* const name_;
  std::atomic<Binding*> bindings_ = nullptr;
};

class Variable {
 public:
  Variable(FatBinary* owner, const void* host, const char* name, size_t bytes, bool managed)
      : owner_(owner), host_(host), name_(name), bytes_(bytes), managed_(managed) {}

  const void* host() const { return host_; }
  const char* name() const { return name_; }
  size_t bytes() const { return bytes_; }
  bool managed() const { return managed_; }

  // Its address in the thread's context; loads the code if need be. Managed variables are refused
  // with cudaErrorNotSupported on devices whose memory the host doesn't see.
  // REQUIRES: UseContext() on this thread.
  cudaError_t Address(CUdeviceptr* address);

  // Of a managed variable: gives the host the address that it has in the thread's context.
  cudaError_t Share();
  // What the host was given; null before, and for other variables.
  const void* SharedAddress() const;

 private:
  FatBinary* const owner_;
  const void* const host_;
  const char* const name_;
  const size_t bytes_;
  const bool managed_;
};

// Null when no kernel, or no variable, was registered under this host address; a managed variable
// is found by the address that it shares with the device, too.
Kernel* FindKernel(const void* host);
Variable* FindVariable(const void* host);

// The host address of the kernel whose driver function in some context is `function`; null if none.
const void* FindHost(CUfunction function);

// True when `handle` is a Kernel that __cudaGetKernel or cudaGetKernel handed out.
bool IsKernelHandle(const void* handle);

// The bodies of the PRIVATE rows of exports.inc.
namespace api {
void** __cudaRegisterFatBinary(void* wrapper);
void __cudaRegisterFatBinaryEnd(void** handle);
void __cudaUnregisterFatBinary(void** handle);
void __cudaRegisterFunction(void** handle, const char* host, char* device, const char* name,
                            int thread_limit, uint3* tid, uint3* bid, dim3* block, dim3* grid,
                            int* warp_size);
void __cudaRegisterVar(void** handle, char* host, char* device, const char* name, int ext,
                       size_t bytes, int constant, int global);
void __cudaRegisterManagedVar(void** handle, void** host, char* device, const char* name, int ext,
                              size_t bytes, int constant, int global);
void __cudaRegisterHostVar(void** handle, const char* name, char* host, size_t bytes);
void __cudaRegisterUnifiedTable(void** handle, const void* table);
char __cudaInitModule(void** handle);
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared_bytes,
                                     cudaStream_t stream);
cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared_bytes, void* stream);
cudaError_t __cudaGetKernel(cudaKernel_t* handle, const void* host);
cudaError_t __cudaLaunchKernel(cudaKernel_t handle, dim3 grid, dim3 block, void** args,
                               size_t shared_bytes, cudaStream_t stream);
}  // namespace api

}  // namespace runtime
