// Instructions on parts of registers, one lane at a time: cvt.pack.
#include <algorithm>

#include "softgpu/exec/handlers.h"

namespace softgpu::exec {
namespace {

template <class T>
T* Reg(Warp* w, uint32_t offset) {
  return reinterpret_cast<T*>(w->regs + offset);
}

uint32_t Saturated(int64_t value, uint32_t bits, bool is_signed) {
  const int64_t top = (int64_t{1} << (bits - (is_signed ? 1 : 0))) - 1;
  const int64_t bottom = is_signed ? -top - 1 : 0;
  return static_cast<uint32_t>(std::clamp(value, bottom, top)) & ((1ull << bits) - 1);
}

}  // namespace

// The two values at the bottom of d; with less than 16 bits each, c moves up above them.
const Inst* PackSaturated(const Inst* ip, Warp* w) {
  const uint32_t bits = ip->imm & 255;
  const bool is_signed = (ip->imm & 256) != 0;
  for (uint32_t m = w->mask; m != 0; m &= m - 1) {
    const uint32_t lane = __builtin_ctz(m);
    const uint32_t high = Saturated(Reg<int32_t>(w, ip->a)[lane], bits, is_signed);
    const uint32_t low = Saturated(Reg<int32_t>(w, ip->b)[lane], bits, is_signed);
    const uint32_t above = bits == 16 ? 0 : Reg<uint32_t>(w, ip->c)[lane] << 2 * bits;
    Reg<uint32_t>(w, ip->d)[lane] = above | high << bits | low;
  }
  return ip + 1;
}

}  // namespace softgpu::exec
