// mov between a register and its two halves.
#include "softgpu/exec/simd/lanes.h"

namespace softgpu::exec {
namespace {

template <class Whole, class Half>
const Inst* Pack(const Inst* ip, Warp* w) {
  return Map2<Whole, Half, Half>(ip, w, [](Half low, Half high) {
    return Whole(Whole(low) | Whole(high) << (sizeof(Half) * 8));
  });
}

// The halves go to d and b; either may be the source's own register only if sizes agree, so never.
template <class Whole, class Half>
const Inst* Unpack(const Inst* ip, Warp* w) {
  const Whole* a = Reg<Whole>(w, ip->a);
  Half* low = Reg<Half>(w, ip->d);
  Half* high = Reg<Half>(w, ip->b);
  const uint32_t m = w->mask;
  LANES low[i] = (m >> i & 1) != 0 ? Half(a[i]) : low[i];
  LANES high[i] = (m >> i & 1) != 0 ? Half(a[i] >> (sizeof(Half) * 8)) : high[i];
  return ip + 1;
}

using enum Internal;
using enum Type;

constexpr HandlerRow kRows[] = {
    {Key(kPack, kB32), Pack<uint32_t, uint16_t>},
    {Key(kPack, kB64), Pack<uint64_t, uint32_t>},
    {Key(kUnpack, kB32), Unpack<uint32_t, uint16_t>},
    {Key(kUnpack, kB64), Unpack<uint64_t, uint32_t>},
};

}  // namespace
}  // namespace softgpu::exec

SOFTGPU_ROWS(Pack, kRows)
