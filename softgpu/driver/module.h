// A PTX module loaded into one context: its variables have addresses, its kernels have handles.
//
// Thread safety: every function may be called from any thread. Launches in flight keep what they
// use.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <memory>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "softgpu/driver/function.h"
#include "softgpu/driver/memory_map.h"
#include "softgpu/ptx/module.h"

namespace softgpu {

class Context;

class Module : public std::enable_shared_from_this<Module> {
 public:
  // Allocates and initialises the variables, and enters module and kernels into the driver's
  // tables. `library_owned`: part of a CUlibrary, not to be unloaded by its module handle.
  static CUresult Load(Context& context, std::shared_ptr<const PtxModule> ptx,
                       std::shared_ptr<Module>* module, bool library_owned = false);

  CUmodule handle() { return reinterpret_cast<CUmodule>(this); }
  uint64_t context_id() const { return context_id_; }
  bool library_owned() const { return library_owned_; }
  const PtxModule& ptx() const { return *ptx_; }
  const std::vector<std::shared_ptr<Function>>& functions() const { return functions_; }

  std::shared_ptr<Function> FindFunction(std::string_view name) const;
  // The exported variable's memory; null when there is none.
  std::shared_ptr<Allocation> FindVariable(std::string_view name) const;
  // The address of each variable, in the order of PtxModule::variables().
  const std::vector<uint64_t>& addresses() const { return addresses_; }

  // Removes module, kernels and variables from the tables.
  void Unload();

  Module(uint64_t context_id, std::shared_ptr<const PtxModule> ptx, bool library_owned)
      : context_id_(context_id), ptx_(std::move(ptx)), library_owned_(library_owned) {}

 private:
  bool AllocateVariables(Context& context);
  void InitializeVariables();

  const uint64_t context_id_;
  const std::shared_ptr<const PtxModule> ptx_;
  const bool library_owned_;
  std::vector<std::shared_ptr<Allocation>> variables_;
  std::vector<uint64_t> addresses_;
  std::vector<std::shared_ptr<Function>> functions_;
  // Positions by name: programs look thousands of kernels up in one module.
  std::unordered_map<std::string_view, size_t> function_index_, variable_index_;
};

}  // namespace softgpu
