#include "softgpu/driver/library.h"

#include <utility>

#include "base/find.h"
#include "base/mutex.h"
#include "softgpu/driver/context.h"
#include "softgpu/driver/driver.h"
#include "softgpu/driver/module.h"

namespace softgpu {

std::shared_ptr<Library> Library::Load(std::shared_ptr<const PtxModule> ptx) {
  std::shared_ptr<Library> library = std::make_shared<Library>(std::move(ptx));
  for (const std::unique_ptr<const Kernel>& kernel : library->ptx().kernels()) {
    const size_t index = library->kernels_.size();
    library->index_[kernel->name()] = index;
    library->kernels_.push_back(std::make_shared<LibraryKernel>(library, kernel.get(), index));
    Driver::Get().kernels.Add(library->kernels_.back());
  }
  Driver::Get().libraries.Add(library);
  return library;
}

std::shared_ptr<LibraryKernel> Library::FindKernel(std::string_view name) const {
  const size_t* const index = base::FindOrNull(index_, name);
  return index == nullptr ? nullptr : kernels_[*index];
}

CUresult Library::InContext(Context& context, std::shared_ptr<Module>* module) {
  base::MutexLock lock(&mutex_);
  std::shared_ptr<Module>& loaded = modules_[context.id()];
  if (loaded == nullptr) {
    const CUresult result = Module::Load(context, ptx_, &loaded, true);
    if (result != CUDA_SUCCESS) {
      modules_.erase(context.id());
      return result;
    }
    for (size_t i = 0; i < kernels_.size(); ++i) {  // both lists follow PtxModule::kernels()
      loaded->functions()[i]->attributes().CopyFrom(kernels_[i]->attributes());
    }
  }
  *module = loaded;
  return CUDA_SUCCESS;
}

CUresult Library::FunctionOf(LibraryKernel& kernel, Context& context,
                             std::shared_ptr<Function>* function) {
  std::shared_ptr<Module> module;
  const CUresult result = InContext(context, &module);
  if (result == CUDA_SUCCESS) *function = module->functions()[kernel.index()];
  return result;
}

CUresult Library::SetAttribute(LibraryKernel& kernel, CUfunction_attribute attribute, int value) {
  base::MutexLock lock(&mutex_);
  CUresult result = kernel.attributes().Set(kernel.kernel(), attribute, value);
  for (const auto& [context_id, module] : modules_) {
    if (result != CUDA_SUCCESS) break;
    result =
        module->functions()[kernel.index()]->attributes().Set(kernel.kernel(), attribute, value);
  }
  return result;
}

void Library::ForgetContext(uint64_t context_id) {
  base::MutexLock lock(&mutex_);
  modules_.erase(context_id);
}

void Library::Unload() {
  const std::shared_ptr<Library> keep = Driver::Get().libraries.Remove(this);
  for (const std::shared_ptr<LibraryKernel>& kernel : kernels_) {
    Driver::Get().kernels.Remove(kernel.get());
  }
  base::MutexLock lock(&mutex_);
  for (const auto& [context_id, module] : modules_) module->Unload();
  modules_.clear();
}

}  // namespace softgpu
