// A recorded function that runs: the player loads the function's modules, allocates and fills
// memory, and makes the steps one CUDA graph. A run copies the inputs, launches the graph, and
// copies the outputs.
//
// An ordinary CUDA program's code: the driver interface, and cuBLAS where the function calls it.
//
// Thread safety: one thread, which made it.
#pragma once

#include "ipc/calls/vendor.h"

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "functions/function.h"
#include "functions/player/caller.h"
#include "functions/player/emitter.h"
#include "functions/relocation.h"
#include "ipc/driver_table.h"

namespace functions {

class Player {
 public:
  // The vendor's libraries, by the names that programs know. Stays for the life of the process.
  static absl::StatusOr<const ipc::Targets*> LoadLibraries();

  // On the first device. `function` and `targets` outlive the player. Every failure is a sentence.
  static absl::StatusOr<std::unique_ptr<Player>> Open(const Function* function,
                                                      const ipc::Targets* targets);
  ~Player() = default;  // the process's end frees what is on the device
  Player(const Player&) = delete;

  // `inputs`: of each input, then of each scalar, as many bytes as it has. REQUIRES: the right
  // numbers and sizes.
  absl::Status Run(std::span<const std::span<const std::byte>> inputs, std::vector<Bytes>* outputs);

 private:
  // Pinned host memory of one port.
  struct Staged {
    std::byte* bytes = nullptr;
  };

  Player(const Function* function, const ipc::Targets* targets)
      : function_(*function), targets_(*targets), driver_(*targets->driver) {}
  absl::Status Start();
  absl::Status Allocate();
  absl::Status SetUp();
  absl::Status FillMemory();
  absl::Status Stage();
  absl::Status Capture();
  absl::Status Emit(uint32_t number, const Step& step);
  absl::Status SetScalar(const Scalar& scalar, std::span<const std::byte> value);
  absl::Status Check(CUresult result, const char* what) const;

  const Function& function_;
  const ipc::Targets& targets_;
  const ipc::DriverTable& driver_;
  CUstream stream_ = nullptr;
  Relocation relocation_;
  std::vector<CUdeviceptr> memory_;  // of each block
  std::unique_ptr<Emitter> emitter_;
  std::unique_ptr<Caller> caller_;
  std::vector<Staged> inputs_, outputs_;
  CUgraphExec executable_ = nullptr;
};

}  // namespace functions
