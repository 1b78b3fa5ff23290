#include "shim/arena/ephemeral.h"

#include <algorithm>
#include <optional>

namespace shim::arena {
namespace {

constexpr uint64_t kHeadroomPart = 8;

}  // namespace

Ephemeral::Ephemeral(uint64_t base, uint64_t bytes_max) : base_(base), bytes_max_(bytes_max) {
  blocks_.AddRange({base, bytes_max}, {});
}

// --- blocks --------------------------------------------------------------------------------------

bool Ephemeral::Take(uint64_t bytes, Blocks::Taken* taken) {
  Note({Repeats::Op::Kind::kTake, false, bytes});
  if (!Place(bytes, taken)) return false;
  NoteBirth(*taken);
  peak_bytes_ = std::max(peak_bytes_, taken->address + taken->bytes - base_);
  return true;
}

// No block waits rather than that the lane grows. A block above the lane goes back first: a block
// that waited may join it to a hole that is low enough.
bool Ephemeral::Place(uint64_t bytes, Blocks::Taken* taken) {
  for (;;) {
    const bool fits = blocks_.Take(bytes, taken);
    if (fits && (freed_.empty() || GrowthFor(*taken) == 0)) return true;
    if (fits) Return({taken->index, taken->stamp});
    const std::optional<Freed> oldest = freed_.TakeOldest();
    if (!oldest.has_value()) return false;
    Return(*oldest);
  }
}

void Ephemeral::Give(Blocks::Index index, Range range, Stamp stamp) {
  NoteFree(Repeats::Op::Kind::kFree, index, range.base);
  if (!freed_.Add({index, stamp}, range.bytes)) return Return({index, stamp});
  while (const std::optional<Freed> oldest = freed_.TakeOver()) Return(*oldest);
}

void Ephemeral::GiveNow(Blocks::Index index, Range range, Stamp stamp) {
  NoteFree(Repeats::Op::Kind::kFreeAtOnce, index, range.base);
  Return({index, stamp});
}

void Ephemeral::Return(const Freed& freed) {
  Range ignored;
  blocks_.Give(freed.index, freed.stamp, &ignored);
}

void Ephemeral::ReturnAll() {
  while (const std::optional<Freed> oldest = freed_.TakeOldest()) Return(*oldest);
}

// Programs wait in loops, a number of times that differs. Only the first wait after a free changes
// what comes, so that the iterations of such a program are equal all the same.
void Ephemeral::OnWaited() {
  if (!freed_since_wait_) return;
  Note({Repeats::Op::Kind::kWait, false, 0});
  freed_since_wait_ = false;
  ReturnAll();
}

void Ephemeral::HoldFreed(bool holds) {
  holds_freed_ = holds;
  repeats_.Forget();
  freed_.SetBytesMax(0);
  ReturnAll();
}

// Iterations were tried with the size of the lost lane, so the lane forgets them.
void Ephemeral::OnLaneLost() {
  repeats_.Forget();
  freed_.SetBytesMax(0);
  ReturnAll();
  lane_bytes_ = 0;
}

// --- what iterations do --------------------------------------------------------------------------

void Ephemeral::Note(const Repeats::Op& op) {
  if (!holds_freed_) return;
  repeats_.OnOp(op);
  freed_.SetBytesMax(repeats_.bytes_max());
  while (const std::optional<Freed> oldest = freed_.TakeOver()) Return(*oldest);
}

void Ephemeral::NoteBirth(const Blocks::Taken& taken) {
  if (!holds_freed_) return;
  if (births_.size() <= taken.index) births_.resize(taken.index + 1);
  births_[taken.index] = {iteration_, births_of_iteration_++};
}

// An older block is known by its address: in an iteration that repeats, another one lies there.
void Ephemeral::NoteFree(Repeats::Op::Kind kind, Blocks::Index index, uint64_t address) {
  if (!holds_freed_) return;
  freed_since_wait_ = true;
  const Birth birth = index < births_.size() ? births_[index] : Birth{};
  const bool is_older = birth.iteration != iteration_;
  Note({kind, is_older, is_older ? address : birth.number});
}

// The next iteration is expected to be the same: how many bytes may wait in it?
void Ephemeral::Plan(const Repeats::Iteration& iteration) {
  for (uint64_t bytes = kWaitingBytesMax; bytes >= kWaitingBytesMax / 64; bytes /= 4) {
    if (HasRoomFor(iteration, bytes)) return repeats_.Learn(iteration, bytes);
  }
  repeats_.Learn(iteration, 0);
}

// A copy does what the session would do, so no second account of waiting can be wrong. What a block
// waits for is of no matter there.
bool Ephemeral::HasRoomFor(const Repeats::Iteration& iteration, uint64_t waiting_bytes_max) const {
  using Kind = Repeats::Op::Kind;
  Ephemeral trial(*this);
  trial.repeats_.Learn(iteration, waiting_bytes_max);
  std::vector<Blocks::Taken> born;
  for (const Repeats::Op& op : iteration.ops) {
    if (op.kind == Kind::kTake) {
      born.emplace_back();
      if (!trial.Take(op.value, &born.back()) || trial.GrowthFor(born.back()) != 0) return false;
      continue;
    }
    if (op.kind == Kind::kWait) {
      trial.OnWaited();
      continue;
    }
    const Blocks::Taken block = op.is_older ? blocks_.LiveAt(op.value) : born[op.value];
    if (block.index == Blocks::kNone) return false;  // another one has outlived the iteration
    const Range range{block.address, block.bytes};
    if (op.kind == Kind::kFree) {
      trial.Give(block.index, range, {});
    } else {
      trial.GiveNow(block.index, range, {});
    }
  }
  return true;
}

// --- the lane ------------------------------------------------------------------------------------

uint64_t Ephemeral::GrowthFor(const Blocks::Taken& taken) const {
  const uint64_t end = RoundUp(taken.address + taken.bytes - base_, kStepBytes);
  if (end <= lane_bytes_) return 0;
  const uint64_t ahead = RoundUp(lane_bytes_ + lane_bytes_ / kHeadroomPart, kStepBytes);
  return std::min(bytes_max_, std::max(end, ahead));
}

void Ephemeral::Grow(uint64_t bytes) { lane_bytes_ = std::max(lane_bytes_, bytes); }

uint64_t Ephemeral::OnBoundary() {
  const uint64_t peak = peak_bytes_;
  ReturnAll();
  blocks_.Canonicalize();
  const uint64_t end = blocks_.LiveEnd();
  peak_bytes_ = end == 0 ? 0 : end - base_;
  ++iteration_;
  births_of_iteration_ = 0;
  freed_since_wait_ = false;
  if (!holds_freed_) return peak;
  const Repeats::Iteration* const wanted = repeats_.OnBoundary({blocks_.live_bytes(), end});
  if (wanted != nullptr) Plan(*wanted);
  freed_.SetBytesMax(repeats_.bytes_max());
  return peak;
}

}  // namespace shim::arena
