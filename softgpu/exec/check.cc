#include "softgpu/exec/check.h"

#include <algorithm>
#include <cstring>

namespace softgpu::exec {
namespace {

// What the aligned word at `address` holds until it is written: unlike any number that programs
// compute with. Shared memory begins at address 0, whose word must be no small number either.
uint32_t PoisonWord(uint64_t address) {
  const uint64_t mixed = ((address >> 2) + 1) * 0x9e3779b97f4a7c15;
  return static_cast<uint32_t>(mixed >> 32) | 1;
}

}  // namespace

void FillPoison(void* at, uint64_t address, uint64_t bytes) {
  std::byte* to = static_cast<std::byte*>(at);
  for (uint64_t done = 0; done < bytes; done += 4) {
    const uint32_t word = PoisonWord(address + done);
    std::memcpy(to + done, &word, std::min<uint64_t>(bytes - done, 4));
  }
}

bool Poisoned(const std::byte* at, uint64_t address, uint32_t bytes) {
  const uint32_t before = bytes < 4 ? address & 3 : 0;
  for (uint32_t done = 0; done < bytes; done += 4) {
    uint32_t word;
    std::memcpy(&word, at - before + done, sizeof word);
    if (word != PoisonWord(address - before + done)) return false;
  }
  return true;
}

void SharedShadow::Begin(uint64_t bytes, uint32_t warps) {
  ++block_;
  warps_ = warps;
  if (cells_.size() < bytes) cells_.resize(bytes);
  std::memset(clocks_, 0, sizeof clocks_);
  std::memset(arrived_, 0, sizeof arrived_);
  std::memset(steps_, 0, sizeof steps_);
  for (uint32_t w = 0; w < warps; ++w) clocks_[w][w] = 1;
}

void SharedShadow::Arrive(uint32_t warp, uint32_t barrier) {
  for (uint32_t w = 0; w < warps_; ++w) {
    arrived_[barrier][w] = std::max(arrived_[barrier][w], clocks_[warp][w]);
  }
  ++clocks_[warp][warp];
  WarpBarrier(warp);
}

void SharedShadow::Leave(uint32_t warp, uint32_t barrier) {
  for (uint32_t w = 0; w < warps_; ++w) {
    clocks_[warp][w] = std::max(clocks_[warp][w], arrived_[barrier][w]);
  }
}

void SharedShadow::Synchronise(uint32_t warp) {
  for (uint32_t w = 0; w < warps_; ++w) {
    clocks_[warp][w] = std::max(clocks_[warp][w], clocks_[w][w]);
    if (w != warp) ++clocks_[w][w];
  }
  WarpBarrier(warp);
}

void SharedShadow::Opened(uint32_t barrier) {
  std::memset(arrived_[barrier], 0, sizeof arrived_[barrier]);
}

SharedShadow::Cell& SharedShadow::CellAt(uint64_t offset) {
  Cell& cell = cells_[offset];
  if (cell.block != block_) cell = Cell{block_, {}, {}, {}};
  return cell;
}

SharedShadow::Access SharedShadow::Now(uint32_t thread, int line, bool atomic) const {
  const uint32_t warp = thread / kLanes;
  return {clocks_[warp][warp], static_cast<uint16_t>(thread), steps_[warp], line, atomic};
}

bool SharedShadow::Ordered(const Access& before, uint32_t thread) const {
  const uint32_t warp = thread / kLanes, other = before.thread / kLanes;
  if (before.clock == 0 || before.thread == thread) return true;
  if (warp == other) return before.step != steps_[warp];
  return clocks_[warp][other] >= before.clock;
}

std::optional<SharedShadow::Conflict> SharedShadow::Read(uint32_t thread, uint64_t offset, int line,
                                                         bool atomic) {
  Cell& cell = CellAt(offset);
  if (cell.read.clock != 0 && cell.read.thread / kLanes != thread / kLanes) {
    cell.read_elsewhere = cell.read;
  }
  cell.read = Now(thread, line, atomic);
  if ((atomic && cell.write.atomic) || Ordered(cell.write, thread)) return std::nullopt;
  return Conflict{cell.write, true};
}

std::optional<SharedShadow::Conflict> SharedShadow::Write(uint32_t thread, uint64_t offset,
                                                          int line, bool atomic, bool same_value) {
  Cell& cell = CellAt(offset);
  std::optional<Conflict> conflict;
  for (const Access* read : {&cell.read, &cell.read_elsewhere}) {
    if (!(atomic && read->atomic) && !Ordered(*read, thread)) conflict = Conflict{*read, false};
  }
  if (!(atomic && cell.write.atomic) && !same_value && !Ordered(cell.write, thread)) {
    conflict = Conflict{cell.write, true};
  }
  cell.write = Now(thread, line, atomic);
  return conflict;
}

}  // namespace softgpu::exec
