#include "shim/arena/ephemeral.h"

#include <algorithm>

namespace shim::arena {
namespace {

constexpr uint64_t kHeadroomPart = 8;

}  // namespace

Ephemeral::Ephemeral(uint64_t base, uint64_t bytes_max) : base_(base), bytes_max_(bytes_max) {
  blocks_.AddRange({base, bytes_max}, {});
}

bool Ephemeral::Take(uint64_t bytes, Blocks::Taken* taken) {
  if (!blocks_.Take(bytes, taken)) return false;
  peak_bytes_ = std::max(peak_bytes_, taken->address + taken->bytes - base_);
  return true;
}

void Ephemeral::Give(Blocks::Index index, Stamp stamp) {
  Range ignored;
  blocks_.Give(index, stamp, &ignored);
}

uint64_t Ephemeral::GrowthFor(const Blocks::Taken& taken) const {
  const uint64_t end = RoundUp(taken.address + taken.bytes - base_, kStepBytes);
  if (end <= lane_bytes_) return 0;
  const uint64_t ahead = RoundUp(lane_bytes_ + lane_bytes_ / kHeadroomPart, kStepBytes);
  return std::min(bytes_max_, std::max(end, ahead));
}

void Ephemeral::Grow(uint64_t bytes) { lane_bytes_ = std::max(lane_bytes_, bytes); }

uint64_t Ephemeral::OnBoundary() {
  const uint64_t peak = peak_bytes_;
  blocks_.Canonicalize();
  const uint64_t end = blocks_.LiveEnd();
  peak_bytes_ = end == 0 ? 0 : end - base_;
  return peak;
}

}  // namespace shim::arena
