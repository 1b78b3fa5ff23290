// A client's orders of launches for random programs: proven from what the model's kernels touch, by
// what the client uses for real kernels (replay/versions.h).
// Thread safety: one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "ipc/calls/limits.h"
#include "replay/launch_ranges.h"
#include "shim/repeat_watch.h"
#include "tests/daemon/worker/programs/step_machine.h"
#include "tests/protocol/dice.h"

namespace worker {

// Proves orders of repeated launches, and takes orders back where a function has changed.
class ProgramOrders final : public shim::RepeatWatch {
 public:
  struct Order {
    uint32_t place = 0;
    std::vector<std::byte> messages;
    std::vector<uint32_t> edges, read, patches, renames;
    uint32_t rename_bytes = 0;
  };
  // `machine`: whose functions have the numbers that the next messages mean.
  ProgramOrders(const StepMachine* machine, uint64_t seed) : machine_(*machine), dice_(seed) {}

  bool OnRepeat(const ipc::ChunkRepeat& repeat, std::span<const ipc::ChunkPatch> patches,
                std::span<const std::byte> run) override;
  bool OnForget() override { return Forget(); }
  // No order holds any longer.
  void Distrust() { distrusts_ = true; }
  // The worker that was told has gone.
  bool Forget() {
    const bool any = !told_.empty();
    told_.clear();
    rename_bytes_left_ = ipc::limits::kRenameBytesMax;
    distrusts_ = false;
    return any;
  }
  std::optional<Order> TakeOrder() { return std::exchange(order_, std::nullopt); }

 private:
  // Of the launches on one stream from `at` on.
  void Prove(uint32_t place, std::span<const std::byte> launches, uint32_t first_word,
             std::span<const ipc::ChunkPatch> patches);
  void AddEdges(const std::vector<replay::LaunchTouches>& launches);

  const StepMachine& machine_;
  protocol::Dice dice_;
  std::set<uint32_t> told_;  // places of orders that the worker has
  uint64_t rename_bytes_left_ = ipc::limits::kRenameBytesMax;
  bool distrusts_ = false;
  std::optional<Order> order_;
};

}  // namespace worker
