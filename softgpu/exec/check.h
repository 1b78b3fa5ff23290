// The checked mode (Launch::report): finds what a kernel does wrong without faulting. A kernel has
// a translation of its own for it, with an instruction before every access, so that it costs
// nothing when it is off.
//
// Uninitialised memory is known by its contents: shared memory when a block starts, local memory,
// and new device memory are filled with a pattern that depends on the place (Poison), and a load
// that finds it unchanged is reported. So whoever writes needs no hook. Races in shared memory are
// found by clocks: each warp counts the barriers it passed and knows how far the others had come at
// the last one that it shared with them; an access to a byte is compared with the last ones.
// Thread safety: SharedShadow belongs to its block's thread; the functions are pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "softgpu/exec/block.h"
#include "softgpu/exec/handlers.h"

namespace softgpu::exec {

// Fills memory that a program sees at `address` with what Poisoned() knows again.
void FillPoison(void* at, uint64_t address, uint64_t bytes);
// Whether all of a load from `address`, found at `at`, was never written; a load of less than four
// bytes counts with the word around it.
bool Poisoned(const std::byte* at, uint64_t address, uint32_t bytes);

class SharedShadow {
 public:
  struct Access {
    uint32_t clock = 0;   // of the thread's warp; 0: there is none
    uint16_t thread = 0;  // in the block
    uint16_t step = 0;    // warp barriers passed
    int line = 0;
    bool atomic = false;
  };

  // A block starts with `bytes` of shared memory.
  void Begin(uint64_t bytes, uint32_t warps);
  // Warp barriers order the lanes of a warp.
  void WarpBarrier(uint32_t warp) { ++steps_[warp]; }
  // What `warp` did so far is known to those who leave the barrier later.
  void Arrive(uint32_t warp, uint32_t barrier);
  void Leave(uint32_t warp, uint32_t barrier);
  void Opened(uint32_t barrier);
  // What all others did so far is known to `warp`.
  void Synchronise(uint32_t warp);

  struct Conflict {
    Access earlier;
    bool wrote = false;  // or read
  };
  // Notes the access of a thread; returns an earlier one that is not ordered with it.
  std::optional<Conflict> Read(uint32_t thread, uint64_t offset, int line, bool atomic);
  // `same_value`: what is there and what is written are equal, so writing after writing is
  // harmless.
  std::optional<Conflict> Write(uint32_t thread, uint64_t offset, int line, bool atomic,
                                bool same_value);

 private:
  struct Cell {
    uint32_t block = 0;  // which one it speaks of: older ones are empty
    Access write, read, read_elsewhere;
  };
  Cell& CellAt(uint64_t offset);
  Access Now(uint32_t thread, int line, bool atomic) const;
  bool Ordered(const Access& before, uint32_t thread) const;

  uint32_t block_ = 0, warps_ = 0;
  std::vector<Cell> cells_;
  uint32_t clocks_[kWarpsMax][kWarpsMax] = {};
  uint32_t arrived_[kBarriers + 1][kWarpsMax] = {};
  uint16_t steps_[kWarpsMax] = {};
};

// Handlers that the checked translation puts before an access, with the fields of that access:
// d b c e the registers of a store, a the address, imm its offset, aux the MemoryShape.
const Inst* CheckAccess(const Inst* ip, Warp* w);
const Inst* CheckAtomic(const Inst* ip, Warp* w);  // and volatile accesses: no race among these
const Inst* CheckBlockBarrier(const Inst* ip, Warp* w);  // before an aligned barrier
const Inst* CheckWarpMask(const Inst* ip, Warp* w);      // before a warp's: b is its mask
const Inst* NoteWarpBarrier(const Inst* ip, Warp* w);    // after a warp's

// "file:line (PTX line 12)", or the PTX line alone.
std::string PlaceInSource(const ptx::KernelImpl& kernel, int line);

}  // namespace softgpu::exec
