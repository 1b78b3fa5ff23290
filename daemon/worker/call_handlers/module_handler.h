// Serves the calls about module images, functions and launches (ipc::ModuleCalls). It knows which
// modules have state that another worker could not rebuild, and which functions end with which
// module. Thread safety: one session's thread.
#pragma once

#include "ipc/calls/vendor.h"

#include <optional>

#include "absl/container/flat_hash_map.h"
#include "daemon/worker/handle_map.h"
#include "daemon/worker/holdings.h"
#include "daemon/worker/launch_runs.h"
#include "daemon/worker/loaded_images.h"
#include "daemon/worker/module_state.h"
#include "daemon/worker/modules.h"
#include "ipc/door.h"
#include "ipc/session_file.h"

namespace worker {

class ModuleHandler final : public ipc::ModuleCalls {
 public:
  // All outlive this object.
  ModuleHandler(Holdings* held, HandleMap* handles, ipc::SessionPage* page);
  ModuleHandler(const ModuleHandler&) = delete;

  const LoadedImages& images() const { return images_; }
  // True when an image has come in part: the rest would go to another worker.
  bool HasPartOfAnImage() const { return assembly_.begun(); }
  // All functions and modules go, modules at the reaper's time.
  void Destroy();

  // Until the next call of this, Launch() writes down what is asked of it, and launches nothing.
  // Null: it launches.
  void Describe(std::optional<LaunchSource::Described>* described) { described_ = described; }
  // No loaded module has state of its own, and no kernel prints, as far as images can tell.
  bool AreStateless() const;

  // --- ipc::ModuleCalls
  CUresult HasModule(const ipc::ModuleHash* hash, int* known) override;
  CUresult ModuleBytes(const ipc::ModuleHash* hash, uint64_t offset, uint64_t total_bytes,
                       const void* bytes, size_t count) override;
  CUresult LoadModule(CUmodule* module, const ipc::ModuleHash* hash, const CUjit_option* options,
                      const uint64_t* option_values, unsigned option_count, char* info_log,
                      unsigned info_log_bytes, char* error_log, unsigned error_log_bytes) override;
  CUresult UnloadModule(CUmodule module) override;
  CUresult GetFunction(CUfunction* function, CUmodule module, const char* name,
                       ipc::FunctionInfo* info, ipc::ParamLayout* params,
                       unsigned params_max) override;
  CUresult GetGlobal(CUdeviceptr* address, size_t* bytes, CUmodule module,
                     const char* name) override;
  CUresult FunctionNames(CUmodule module, unsigned* count, char* names,
                         unsigned names_bytes) override;
  CUresult Launch(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                  unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                  CUstream stream, const ipc::LaunchAttribute* attributes, unsigned attribute_count,
                  const void* params, unsigned param_bytes) override;
  CUresult LinkImages(const ipc::LinkInput* inputs, unsigned count, const CUjit_option* options,
                      const uint64_t* option_values, unsigned option_count, ipc::ModuleHash* linked,
                      uint64_t* linked_bytes, char* info_log, unsigned info_log_bytes,
                      char* error_log, unsigned error_log_bytes) override;
  CUresult ImageBytes(const ipc::ModuleHash* hash, uint64_t offset, void* bytes,
                      size_t count) override;

 private:
  void PublishStates();

  const Environment& environment_;
  const ipc::DriverTable& driver_;
  Holdings& held_;
  HandleMap& handles_;
  ipc::SessionPage& page_;
  ModuleAssembly assembly_;
  std::optional<LaunchSource::Described>* described_ = nullptr;
  absl::flat_hash_map<CUmodule, ModuleState> states_;
  LoadedImages images_;
  absl::flat_hash_map<CUfunction, CUmodule> modules_of_functions_;
};

}  // namespace worker
