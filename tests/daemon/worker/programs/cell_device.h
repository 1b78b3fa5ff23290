// A device of a few cells of memory, with streams, events and graphs, for tests of replay.
//
// Work waits in its stream. It is done in an order that chance draws among all orders that CUDA
// allows: the first work of any stream is next, and within a graph any node whose predecessors are
// done. So work without an order that it needs leaves other cells sooner or later. A cell remembers
// all writes in their order since it was last written anew, and additions without an order.
// Scratch cells lie behind the cells of the program. Thread safety: one thread.
#pragma once

#include "ipc/calls/vendor.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "ipc/driver_table.h"
#include "tests/protocol/dice.h"

namespace worker {

// --- what is done --------------------------------------------------------------------------------

constexpr uint32_t kCells = 24;
constexpr uint32_t kScratchCell = 64;  // the first of them; no cells lie in between
constexpr uint64_t kCellBytes = 4;     // of a cell, as its address and spans have it

// A function's number modulo kEffects is its effect. Functions of one effect differ in their
// values.
enum class Effect : uint32_t { kFill, kCopy, kStore, kAdd, kMix, kSum, kAnew };
constexpr uint32_t kEffects = 7, kFirstOfKernels = 2;
constexpr Effect EffectOf(uint32_t function) { return static_cast<Effect>(function % kEffects); }

struct Work {
  uint32_t function = 0;
  uint32_t to = 0;
  uint32_t from = 0;
  uint32_t value = 0;
  uint32_t count = 1;  // cells of a fill or copy; of a kernel, its grid
  uint32_t more = 0;   // a sum of the kernel's further arguments
};

enum class Access : uint8_t { kRead, kWrite, kAdd };
constexpr bool AreInConflict(Access a, Access b) { return a != b || a == Access::kWrite; }
// Calls touch(cell, access) for all cells that the work touches.
template <class Touch>
void ForEachTouch(const Work& work, Touch touch) {
  const Effect effect = EffectOf(work.function);
  const bool is_copy = effect == Effect::kCopy;
  const uint32_t cells = is_copy || effect == Effect::kFill ? work.count : 1;
  for (uint32_t i = 0; i < cells; ++i)
    touch(work.to + i, effect == Effect::kAdd ? Access::kAdd : Access::kWrite);
  const bool reads =
      is_copy || effect == Effect::kMix || effect == Effect::kSum || effect == Effect::kAnew;
  for (uint32_t i = 0; reads && i < cells; ++i) touch(work.from + i, Access::kRead);
}

struct Cell {
  uint32_t value = 0;
  uint64_t past = 0;  // of all that was written here since kAnew
  bool operator==(const Cell&) const = default;
};
using Cells = std::array<Cell, kCells>;

// --- the device ----------------------------------------------------------------------------------

// The work of a graph, and a bit for each node that must be done before.
struct WorkGraph {
  static constexpr size_t kNodesMax = 64;
  std::vector<Work> nodes;
  std::vector<uint64_t> before;
};

class CellDevice {
 public:
  explicit CellDevice(uint64_t seed) : dice_(seed) {}
  CellDevice(const CellDevice&) = delete;

  // Streams are numbered in the order in which they are made.
  uint32_t CreateStream();
  void Do(uint32_t stream, const Work& work);
  void Launch(uint32_t stream, std::shared_ptr<const WorkGraph> graph);
  // Where the work of the stream ends now.
  uint64_t End(uint32_t stream) const;
  void WaitFor(uint32_t stream, uint32_t other, uint64_t end);
  // All work is done when this returns.
  void Finish();

  const Cells& cells() const { return cells_; }
  // REQUIRES of this: all work is done.
  void Fill(uint32_t cell, uint32_t count, uint32_t value);

  uint64_t graphs_launched() const { return graphs_launched_; }
  // True when the driver is to refuse the call that it is given now.
  bool Refuses() { return refuses_ && dice_.OneIn(97); }
  void SetRefuses(bool refuses) { refuses_ = refuses; }

 private:
  struct Item {
    Work work;                               // of an item without a graph
    std::shared_ptr<const WorkGraph> graph;  // null: there is none
    uint64_t done = 0;                       // nodes of it
    uint32_t other = kNone;                  // the stream that is waited for
    uint64_t end = 0;
  };
  struct Stream {
    std::vector<Item> items;
    size_t next = 0;
    uint64_t finished = 0;  // items, ever
  };
  static constexpr uint32_t kNone = ~0u;

  void Add(uint32_t stream, Item item);
  // Does something. False: nothing is left.
  bool Step();
  bool StepOf(Stream* stream);
  void Run(const Work& work);
  Cell& At(uint32_t cell) { return cell < kScratchCell ? cells_[cell] : scratch_[cell]; }

  protocol::Dice dice_;
  Cells cells_;
  std::map<uint32_t, Cell> scratch_;
  std::vector<Stream> streams_;
  uint64_t graphs_launched_ = 0;
  bool refuses_ = false;
};

// --- its driver ----------------------------------------------------------------------------------

// Graphs of the table are launched on this device until the next call. The device outlives that.
void UseCellDevice(CellDevice* device);
void AddCellGraphs(ipc::DriverTable* table);
// Graphs and executable graphs that were not destroyed.
uint64_t CellGraphsAlive();

inline CUstream HandleOfStream(uint32_t stream) {
  return reinterpret_cast<CUstream>(uintptr_t{stream} + 1);
}
inline uint32_t StreamOfHandle(CUstream handle) {
  return static_cast<uint32_t>(reinterpret_cast<uintptr_t>(handle) - 1);
}
inline CUfunction HandleOfFunction(uint32_t function) {
  return reinterpret_cast<CUfunction>(uintptr_t{function} + 1);
}
// Where the cells lie.
CUdeviceptr AddressOfCell(uint32_t cell);
// The sum of a kernel's further arguments.
uint32_t SumOfWords(const std::byte* words, size_t count);

}  // namespace worker
