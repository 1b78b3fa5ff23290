// A library: PTX that belongs to no context, loaded into each context that first uses it.
//
// Thread safety: every function may be called from any thread.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "softgpu/driver/function.h"
#include "softgpu/ptx/module.h"

namespace softgpu {

class Context;
class Library;
class Module;

// A CUkernel: a kernel of a library, whatever the context.
class LibraryKernel {
 public:
  // `index`: its place among the library's kernels.
  LibraryKernel(std::weak_ptr<Library> library, const Kernel* kernel, size_t index)
      : library_(std::move(library)), kernel_(kernel), index_(index) {}

  CUkernel handle() { return reinterpret_cast<CUkernel>(this); }
  const Kernel& kernel() const { return *kernel_; }
  size_t index() const { return index_; }
  std::shared_ptr<Library> library() const { return library_.lock(); }
  KernelAttributes& attributes() { return attributes_; }

 private:
  const std::weak_ptr<Library> library_;
  const Kernel* const kernel_;
  const size_t index_;
  KernelAttributes attributes_;
};

class Library : public std::enable_shared_from_this<Library> {
 public:
  // Enters the library and its kernels into the driver's tables.
  static std::shared_ptr<Library> Load(std::shared_ptr<const PtxModule> ptx);
  explicit Library(std::shared_ptr<const PtxModule> ptx) : ptx_(std::move(ptx)) {}

  CUlibrary handle() { return reinterpret_cast<CUlibrary>(this); }
  const PtxModule& ptx() const { return *ptx_; }
  const std::vector<std::shared_ptr<LibraryKernel>>& kernels() const { return kernels_; }
  std::shared_ptr<LibraryKernel> FindKernel(std::string_view name) const;

  // The library as a module of `context`, loaded on first use.
  CUresult InContext(Context& context, std::shared_ptr<Module>* module);
  // `kernel` as a function of `context`.
  CUresult FunctionOf(LibraryKernel& kernel, Context& context, std::shared_ptr<Function>* function);
  // Sets an attribute on the kernel and on what it is in every context, now and later.
  CUresult SetAttribute(LibraryKernel& kernel, CUfunction_attribute attribute, int value);

  void ForgetContext(uint64_t context_id);
  void Unload();

 private:
  const std::shared_ptr<const PtxModule> ptx_;
  std::vector<std::shared_ptr<LibraryKernel>> kernels_;  // in the order of PtxModule::kernels()
  std::unordered_map<std::string_view, size_t> index_;   // of kernels_, by name
  base::Mutex mutex_;
  std::map<uint64_t, std::shared_ptr<Module>> modules_ GUARDED_BY(mutex_);  // by context id
};

}  // namespace softgpu
