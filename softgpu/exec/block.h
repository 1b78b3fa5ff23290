// A block of threads while it runs: its warps, barriers and memories, and the launch that it
// belongs to. Thread safety: a block belongs to one thread; LaunchState is shared and says what is
// safe.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <set>
#include <tuple>
#include <vector>

#include "base/mutex.h"
#include "softgpu/exec/code.h"
#include "softgpu/exec/launch.h"
#include "softgpu/exec/warp.h"

namespace softgpu::exec {

inline constexpr uint32_t kWarpsMax = 32;
inline constexpr uint32_t kBarriers = 16;
inline constexpr uint32_t kClusterBarrier = kBarriers;  // one more, which programs cannot name
inline constexpr uint64_t kSharedGranule = 128;         // of sm_80, in bytes
inline constexpr int32_t kFuel = 2048;  // backward branches between looks at Launch::cancel

// Everything about one Execute() call. Const but for what is atomic or has the mutex.
struct LaunchState {
  const Launch* launch = nullptr;
  std::shared_ptr<const KernelCode> code;
  std::shared_ptr<const Images> images;
  uint32_t threads = 0, warps = 0;  // of a block
  uint64_t blocks = 0;
  uint64_t shared_bytes = 0;  // asked for
  // Hardware gives shared memory in granules, and programs read what is behind their own in the
  // last one (rubbish, no fault). A checked launch is strict.
  uint64_t shared_bytes_reached() const {
    return checked ? shared_bytes
                   : (shared_bytes + kSharedGranule - 1) / kSharedGranule * kSharedGranule;
  }
  alignas(64) std::byte
      grid_memory[ptx::kGridBytes] = {};  // at kGridWindow of a cooperative launch
  // Once several threads run the grid: what is left of it. A thread begins with a share of its own,
  // the same one whenever the grid is launched, for its cache has what lies there; then it helps.
  struct alignas(64) Share {
    std::atomic<uint64_t> next{0};
    uint64_t end = 0;
  };
  std::vector<Share> shares;
  std::atomic<bool> stop{false};
  // REQUIRES: no thread works on the launch any more, so that it needs no lock.
  const std::optional<Fault>& FaultAtEnd() const NO_THREAD_SAFETY_ANALYSIS { return fault; }

  base::Mutex mutex;
  std::optional<Fault> fault GUARDED_BY(mutex);  // the first one
  uint64_t deadline_ns = 0;                      // of the watchdog; 0: none
  bool checked = false;
  std::set<std::tuple<Finding::Kind, int, int>> findings GUARDED_BY(mutex);  // reported

  bool Stopping() const {
    return stop.load(std::memory_order_relaxed) ||
           (launch->cancel != nullptr && launch->cancel->load(std::memory_order_relaxed));
  }
  bool Overdue() const;
  void Report(Fault fault);
  void Divide(uint64_t first, unsigned threads);  // the blocks from `first` on
  bool BlocksLeft() const;
};

struct Barrier {
  uint32_t arrived[kWarpsMax] = {};
  uint32_t expected = 0;  // threads; 0: all of the block
  // bar.red of the phase that runs, and of the one before.
  uint32_t ones = 0, voters = 0, ones_before = 0, voters_before = 0;
};

class SharedShadow;  // check.h

struct Block {
  LaunchState* state = nullptr;
  SharedShadow* shadow = nullptr;  // of the checked mode
  Warp* warps = nullptr;
  uint32_t warp_count = 0;
  const Inst* begins = nullptr;  // where all warps are to begin; null: they have begun
  bool intact = false;           // the warps' frames are as at the beginning
  Dim3 id;
  uint64_t clock_start = 0;
  std::byte* stacks = nullptr;  // call frames: warp w's at w * kStackBytes
  Barrier barriers[kBarriers + 1];
  uint32_t barriers_in_use = 0;  // one bit each
  uint32_t rounds_in_vain = 0;   // turns of all warps, the last ones, that were Stop::kInVain
};

inline constexpr size_t kStackBytes = 8u << 20;

// Memory for one resident block, reused from launch to launch. One per executor thread; a
// cooperative grid has one per block.
class BlockMemory {
 public:
  BlockMemory() = default;
  ~BlockMemory();
  BlockMemory(const BlockMemory&) = delete;
  BlockMemory& operator=(const BlockMemory&) = delete;
  // Makes room for a block of this launch. False when the machine has no memory left.
  bool Prepare(LaunchState* state);
  // Begins block number `index` of the grid.
  Block* Start(uint64_t index);

 private:
  void BuildFrames();
  void Number(uint64_t index);
  struct Area {
    std::byte* data = nullptr;
    size_t bytes = 0;
    bool Reserve(size_t wanted);
    ~Area();
  };
  Block block_;
  Area warps_, frames_, shared_, local_, stacks_;
  std::shared_ptr<const KernelCode> code_;  // whose constants lie in frames_
  std::shared_ptr<const Images> images_;
  uint32_t warps_ready_ = 0;
  Dim3 numbered_{0, 0, 0};  // block shape that the warps' thread indices are for
  LaunchState* state_ = nullptr;
  uint64_t index_ = 0;  // of the block that began last
  std::shared_ptr<SharedShadow> shadow_;
};

enum class Progress { kDone, kYield, kFault };

// Runs a block until it ends, faults, or (kYield) every warp that could run has used its fuel.
Progress RunBlock(Block* block);
// Runs a grid's blocks from `first` on, before `last`, each to its end. False: the grid is to stop.
bool RunBlocks(LaunchState* state, BlockMemory* memory, uint64_t first, uint64_t last);

}  // namespace softgpu::exec
