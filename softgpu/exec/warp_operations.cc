// shfl, vote, match, redux, elect, bar.warp.sync. Each first waits for the lanes of its mask.
#include <bit>

#include "softgpu/exec/handlers.h"
#include "softgpu/exec/schedule.h"

namespace softgpu::exec {
namespace {

uint32_t& Pred(Warp* w, uint32_t offset) { return *Reg<uint32_t>(w, offset); }

uint32_t First(Warp* w, uint32_t offset) {
  return Reg<uint32_t>(w, offset)[__builtin_ctz(w->mask)];
}

void SetPred(Warp* w, uint32_t offset, uint32_t bits) {
  uint32_t& d = Pred(w, offset);
  d = (d & ~w->mask) | (bits & w->mask);
}

void SetAll(Warp* w, uint32_t offset, uint32_t value) {
  uint32_t* d = Reg<uint32_t>(w, offset);
  for (uint32_t m = w->mask; m != 0; m &= m - 1) d[__builtin_ctz(m)] = value;
}

// Where each lane of a shfl reads, or something past the last lane when that lies outside its
// segment.
void FindSources(ptx::ShflMode mode, const uint32_t* b, const uint32_t* c, uint32_t* source) {
  constexpr uint32_t kOutside = kLanes;
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    const uint32_t delta = b[lane] & 31, clamp = c[lane] & 31, segment = c[lane] >> 8 & 31;
    const uint32_t top = (lane & segment) | (clamp & ~segment);
    uint32_t from = kOutside;
    switch (mode) {
      case ptx::ShflMode::kUp:
        from = lane >= delta + top ? lane - delta : kOutside;
        break;
      case ptx::ShflMode::kDown:
        from = lane + delta <= top ? lane + delta : kOutside;
        break;
      case ptx::ShflMode::kBfly:
        from = (lane ^ delta) <= top ? lane ^ delta : kOutside;
        break;
      case ptx::ShflMode::kIdx: {
        const uint32_t index = (lane & segment) | (delta & ~segment);
        from = index <= top ? index : kOutside;
        break;
      }
    }
    source[lane] = from;
  }
}

template <class T>
const Inst* Match(const Inst* ip, Warp* w) {
  const uint32_t members = First(w, ip->b);
  const Inst* next = nullptr;
  if (MustWait(ip, w, members, &next)) return next;
  const T* a = Reg<T>(w, ip->a);
  uint32_t result[kLanes] = {};
  uint32_t all = 0;
  for (uint32_t m = w->mask; m != 0; m &= m - 1) {
    const int lane = __builtin_ctz(m);
    for (uint32_t o = w->mask & members; o != 0; o &= o - 1) {
      const int other = __builtin_ctz(o);
      if (a[other] == a[lane]) result[lane] |= 1u << other;
    }
    if (result[lane] == (w->mask & members)) all |= 1u << lane;
  }
  const bool wants_all = ip->imm != 0;  // match.all: everything or nothing
  uint32_t* d = Reg<uint32_t>(w, ip->d);
  for (uint32_t m = w->mask; m != 0; m &= m - 1) {
    const int lane = __builtin_ctz(m);
    d[lane] = !wants_all || (all >> lane & 1) != 0 ? result[lane] : 0;
  }
  if (wants_all && ip->e != 0) SetPred(w, ip->e, all);
  return ip + 1;
}

// The least or greatest float; -0 lies below +0, and a NaN counts only where it wins.
uint32_t ReduceFloats(const uint32_t* a, uint32_t lanes, uint64_t imm) {
  const bool least = static_cast<ptx::AtomOp>(imm & 255) == ptx::AtomOp::kMin;
  constexpr uint32_t kNan = 0x7fffffff;
  uint32_t best = kNan;
  for (uint32_t m = lanes; m != 0; m &= m - 1) {
    const uint32_t v = a[__builtin_ctz(m)] & ((imm & 1024) != 0 ? 0x7fffffff : ~0u);
    const bool nan = (v & 0x7fffffff) > 0x7f800000;
    if (nan && (imm & 2048) != 0) return kNan;
    if (nan) continue;
    // As integers that are ordered like the floats.
    const auto key = [](uint32_t bits) { return (bits >> 31) != 0 ? ~bits : bits | 0x80000000; };
    const bool better = least ? key(v) < key(best) : key(v) > key(best);
    if (best == kNan || better) best = v;
  }
  return best;
}

}  // namespace

const Inst* Shfl(const Inst* ip, Warp* w) {
  const Inst* next = nullptr;
  const uint32_t members = First(w, ip->e);
  if (members != w->mask && MustWait(ip, w, members, &next)) return next;
  const uint32_t* a = Reg<uint32_t>(w, ip->a);
  const uint32_t* b = Reg<uint32_t>(w, ip->b);
  const uint32_t* c = Reg<uint32_t>(w, ip->c);
  uint32_t source[kLanes], result[kLanes];
  uint32_t valid = 0;
  FindSources(static_cast<ptx::ShflMode>(ip->imm), b, c, source);
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    const bool inside = source[lane] < kLanes;
    result[lane] = a[inside ? source[lane] : lane];
    valid |= inside ? 1u << lane : 0;
  }
  uint32_t* d = Reg<uint32_t>(w, ip->d);
  const uint32_t mask = w->mask;
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    d[lane] = (mask >> lane & 1) != 0 ? result[lane] : d[lane];
  }
  if (ip->guard != 0) SetPred(w, ip->guard, valid);
  return ip + 1;
}

// imm: VoteMode in the low byte, bit 8: the predicate is negated.
const Inst* Vote(const Inst* ip, Warp* w) {
  const Inst* next = nullptr;
  const uint32_t members = First(w, ip->b);
  if (members != w->mask && MustWait(ip, w, members, &next)) return next;
  const uint32_t voters = w->mask & members;
  const uint32_t p = Pred(w, ip->a) ^ ((ip->imm & 256) != 0 ? kFullMask : 0);
  const uint32_t ones = p & voters;
  switch (static_cast<ptx::VoteMode>(ip->imm & 255)) {
    case ptx::VoteMode::kBallot:
      SetAll(w, ip->d, ones);
      break;
    case ptx::VoteMode::kAll:
      SetPred(w, ip->d, ones == voters ? kFullMask : 0);
      break;
    case ptx::VoteMode::kAny:
      SetPred(w, ip->d, ones != 0 ? kFullMask : 0);
      break;
    case ptx::VoteMode::kUni:
      SetPred(w, ip->d, ones == voters || ones == 0 ? kFullMask : 0);
      break;
  }
  return ip + 1;
}

const Inst* Match32(const Inst* ip, Warp* w) { return Match<uint32_t>(ip, w); }
const Inst* Match64(const Inst* ip, Warp* w) { return Match<uint64_t>(ip, w); }

const Inst* Activemask(const Inst* ip, Warp* w) {
  SetAll(w, ip->d, w->mask);
  return ip + 1;
}

// imm: AtomOp in the low byte; bit 8: signed, 9: f32, 10: of magnitudes, 11: a NaN wins.
const Inst* Redux(const Inst* ip, Warp* w) {
  const Inst* next = nullptr;
  const uint32_t members = First(w, ip->b);
  if (members != w->mask && MustWait(ip, w, members, &next)) return next;
  const uint32_t* a = Reg<uint32_t>(w, ip->a);
  if ((ip->imm & 512) != 0) {
    SetAll(w, ip->d, ReduceFloats(a, w->mask & members, ip->imm));
    return ip + 1;
  }
  const bool is_signed = (ip->imm & 256) != 0;
  bool first = true;
  uint32_t result = 0;
  for (uint32_t m = w->mask & members; m != 0; m &= m - 1) {
    const uint32_t v = a[__builtin_ctz(m)];
    const bool less = is_signed ? int32_t(v) < int32_t(result) : v < result;
    switch (static_cast<ptx::AtomOp>(ip->imm & 255)) {
      case ptx::AtomOp::kAdd:
        result += v;
        break;
      case ptx::AtomOp::kAnd:
        result = first ? v : result & v;
        break;
      case ptx::AtomOp::kOr:
        result |= v;
        break;
      case ptx::AtomOp::kXor:
        result ^= v;
        break;
      case ptx::AtomOp::kMin:
        result = first || less ? v : result;
        break;
      case ptx::AtomOp::kMax:
        result = first || !less ? v : result;
        break;
      default:
        break;
    }
    first = false;
  }
  SetAll(w, ip->d, result);
  return ip + 1;
}

const Inst* Elect(const Inst* ip, Warp* w) {
  const Inst* next = nullptr;
  const uint32_t members = First(w, ip->b);
  if (members != w->mask && MustWait(ip, w, members, &next)) return next;
  const uint32_t leader = __builtin_ctz(w->mask);
  SetAll(w, ip->d, leader);
  if (ip->e != 0) SetPred(w, ip->e, 1u << leader);
  return ip + 1;
}

const Inst* WarpBarrier(const Inst* ip, Warp* w) {
  const Inst* next = nullptr;
  const uint32_t members = First(w, ip->a);
  if (members != w->mask && MustWait(ip, w, members, &next)) return next;
  return ip + 1;
}

}  // namespace softgpu::exec
