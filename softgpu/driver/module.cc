#include "softgpu/driver/module.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "base/find.h"
#include "softgpu/driver/context.h"
#include "softgpu/driver/device.h"
#include "softgpu/driver/device_memory.h"
#include "softgpu/driver/driver.h"
#include "softgpu/driver/error_log.h"

namespace softgpu {

CUresult Module::Load(Context& context, std::shared_ptr<const PtxModule> ptx,
                      std::shared_ptr<Module>* module, bool library_owned) {
  const std::shared_ptr<Module> loaded =
      std::make_shared<Module>(context.id(), std::move(ptx), library_owned);
  if (!loaded->AllocateVariables(context)) {
    loaded->Unload();
    return Fail(CUDA_ERROR_OUT_OF_MEMORY, "the module's variables do not fit into device memory");
  }
  loaded->InitializeVariables();
  for (const std::unique_ptr<const Kernel>& kernel : loaded->ptx().kernels()) {
    loaded->function_index_[kernel->name()] = loaded->functions_.size();
    loaded->functions_.push_back(std::make_shared<Function>(loaded, kernel.get()));
    Driver::Get().functions.Add(loaded->functions_.back());
  }
  Driver::Get().modules.Add(loaded);
  *module = loaded;
  return CUDA_SUCCESS;
}

bool Module::AllocateVariables(Context& context) {
  for (const Variable& variable : ptx_->variables()) {
    const Allocation::Kind kind =
        variable.managed ? Allocation::Kind::kManaged : Allocation::Kind::kVariable;
    const uint64_t bytes = variable.bytes == 0 ? 1 : variable.bytes;
    std::shared_ptr<Allocation> memory =
        AllocateDeviceMemory(&context.device(), kind, bytes, context.id());
    if (memory == nullptr) return false;
    variable_index_[variable.name] = variables_.size();  // nvcc marks none as visible
    addresses_.push_back(memory->base);
    variables_.push_back(std::move(memory));
  }
  return true;
}

void Module::InitializeVariables() {
  for (size_t i = 0; i < variables_.size(); ++i) {
    const Variable& variable = ptx_->variables()[i];
    std::byte* const bytes = reinterpret_cast<std::byte*>(addresses_[i]);
    std::copy(variable.init.begin(), variable.init.end(), bytes);
    std::memset(bytes + variable.init.size(), 0, variable.bytes - variable.init.size());
    for (const Variable::Relocation& relocation : variable.relocations) {
      if (relocation.variable >= addresses_.size())
        continue;  // a function: the executor resolves it
      const uint64_t value = addresses_[relocation.variable] + relocation.addend;
      std::memcpy(bytes + relocation.offset, &value, sizeof value);
    }
  }
}

std::shared_ptr<Function> Module::FindFunction(std::string_view name) const {
  const size_t* const index = base::FindOrNull(function_index_, name);
  return index == nullptr ? nullptr : functions_[*index];
}

std::shared_ptr<Allocation> Module::FindVariable(std::string_view name) const {
  const size_t* const index = base::FindOrNull(variable_index_, name);
  return index == nullptr ? nullptr : variables_[*index];
}

void Module::Unload() {
  const std::shared_ptr<Module> keep = Driver::Get().modules.Remove(this);
  for (const std::shared_ptr<Function>& function : functions_) {
    Driver::Get().functions.Remove(function.get());
  }
  for (const std::shared_ptr<Allocation>& variable : variables_) {
    Driver::Get().memory_map().Remove(variable->base, [](const Allocation&) { return true; });
  }
}

}  // namespace softgpu
