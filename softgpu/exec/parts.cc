// Instructions on parts of registers, one lane at a time: cvt.pack and the video instructions.
#include <algorithm>

#include "softgpu/exec/handlers.h"

namespace softgpu::exec {
namespace {

uint32_t Saturated(int64_t value, uint32_t bits, bool is_signed) {
  const int64_t top = (int64_t{1} << (bits - (is_signed ? 1 : 0))) - 1;
  const int64_t bottom = is_signed ? -top - 1 : 0;
  return static_cast<uint32_t>(std::clamp(value, bottom, top)) & ((1ull << bits) - 1);
}

// A byte (1-4) or half (5, 6) of a register, or all of it.
int64_t Part(uint32_t bits, uint32_t part, bool is_signed) {
  const uint32_t width = part == 0 ? 32 : part < 5 ? 8 : 16;
  const uint32_t shift = part == 0 ? 0 : part < 5 ? 8 * (part - 1) : 16 * (part - 5);
  const uint32_t moved = bits >> shift << (32 - width);
  if (is_signed) return static_cast<int32_t>(moved) >> (32 - width);
  return moved >> (32 - width);
}

VideoPlan UnpackVideo(uint64_t imm) {
  VideoPlan plan;
  plan.op = imm & 63;
  plan.d_signed = (imm >> 6 & 1) != 0;
  plan.a_signed = (imm >> 7 & 1) != 0;
  plan.b_signed = (imm >> 8 & 1) != 0;
  plan.saturates = (imm >> 9 & 1) != 0;
  plan.wraps = (imm >> 10 & 1) != 0;
  plan.plus_one = (imm >> 11 & 1) != 0;
  plan.combine = imm >> 16 & 15;
  plan.mode = imm >> 24 & 255;
  plan.d_part = imm >> 32 & 15;
  plan.a_part = imm >> 36 & 15;
  plan.b_part = imm >> 40 & 15;
  return plan;
}

bool Compares(ptx::Compare compare, int64_t a, int64_t b) {
  switch (compare) {
    case ptx::Compare::kEq:
      return a == b;
    case ptx::Compare::kNe:
      return a != b;
    case ptx::Compare::kLt:
    case ptx::Compare::kLo:
      return a < b;
    case ptx::Compare::kLe:
    case ptx::Compare::kLs:
      return a <= b;
    case ptx::Compare::kGt:
    case ptx::Compare::kHi:
      return a > b;
    default:
      return a >= b;
  }
}

// What one element of a video instruction gives before it is saturated.
int64_t Compute(ptx::Op op, const VideoPlan& plan, int64_t a, int64_t b) {
  using ptx::Op;
  switch (op) {
    case Op::kVadd:
    case Op::kVadd2:
    case Op::kVadd4:
      return a + b;
    case Op::kVsub:
    case Op::kVsub2:
    case Op::kVsub4:
      return a - b;
    case Op::kVabsdiff:
    case Op::kVabsdiff2:
    case Op::kVabsdiff4:
      return a < b ? b - a : a - b;
    case Op::kVmin:
    case Op::kVmin2:
    case Op::kVmin4:
      return std::min(a, b);
    case Op::kVmax:
    case Op::kVmax2:
    case Op::kVmax4:
      return std::max(a, b);
    case Op::kVavrg2:
    case Op::kVavrg4:
      return a + b < 0 ? (a + b) >> 1 : (a + b + 1) >> 1;
    case Op::kVshl:
    case Op::kVshr: {
      const int64_t amount = plan.wraps ? b & 31 : std::min<int64_t>(b, 32);
      return op == Op::kVshl ? static_cast<int64_t>(static_cast<uint64_t>(a) << amount)
                             : a >> amount;
    }
    default:
      return Compares(static_cast<ptx::Compare>(plan.mode), a, b) ? 1 : 0;
  }
}

uint32_t Combined(ptx::Combine combine, uint32_t value, uint32_t c, bool is_signed) {
  const bool less = is_signed ? static_cast<int32_t>(value) < static_cast<int32_t>(c) : value < c;
  switch (combine) {
    case ptx::Combine::kAdd:
      return value + c;
    case ptx::Combine::kMin:
      return less ? value : c;
    case ptx::Combine::kMax:
      return less ? c : value;
    default:
      return value;
  }
}

// vadd and its kin: one element; a second operation with c, or c with a part of it replaced.
const Inst* VideoScalar(const Inst* ip, Warp* w) {
  const VideoPlan plan = UnpackVideo(ip->imm);
  const ptx::Op op = static_cast<ptx::Op>(static_cast<int>(ptx::Op::kVadd) + plan.op);
  for (uint32_t m = w->mask; m != 0; m &= m - 1) {
    const uint32_t lane = __builtin_ctz(m);
    const int64_t a = Part(Reg<uint32_t>(w, ip->a)[lane], plan.a_part, plan.a_signed);
    const int64_t b = Part(Reg<uint32_t>(w, ip->b)[lane], plan.b_part, plan.b_signed);
    const uint32_t c = Reg<uint32_t>(w, ip->c)[lane];
    const uint32_t width = plan.d_part == 0 ? 32 : plan.d_part < 5 ? 8 : 16;
    const int64_t exact = Compute(op, plan, a, b);
    uint32_t value =
        plan.saturates ? Saturated(exact, width, plan.d_signed) : static_cast<uint32_t>(exact);
    value = Combined(static_cast<ptx::Combine>(plan.combine), value, c, plan.d_signed);
    if (plan.d_part != 0) {
      const uint32_t shift = plan.d_part < 5 ? 8 * (plan.d_part - 1) : 16 * (plan.d_part - 5);
      const uint32_t keep = ((1u << width) - 1) << shift;
      value = (c & ~keep) | (value << shift & keep);
    }
    Reg<uint32_t>(w, ip->d)[lane] = value;
  }
  return ip + 1;
}

// vadd2, vadd4 and their kin: two halves or four bytes; .add sums them up with c.
template <uint32_t kParts>
const Inst* VideoVector(const Inst* ip, Warp* w) {
  constexpr uint32_t kWidth = 32 / kParts, kFirst = kParts == 4 ? 1 : 5;
  const VideoPlan plan = UnpackVideo(ip->imm);
  const ptx::Op op = static_cast<ptx::Op>(static_cast<int>(ptx::Op::kVadd) + plan.op);
  const bool sums = static_cast<ptx::Combine>(plan.combine) == ptx::Combine::kAdd;
  for (uint32_t m = w->mask; m != 0; m &= m - 1) {
    const uint32_t lane = __builtin_ctz(m);
    uint32_t packed = 0, sum = Reg<uint32_t>(w, ip->c)[lane];
    for (uint32_t part = 0; part < kParts; ++part) {
      const int64_t a = Part(Reg<uint32_t>(w, ip->a)[lane], kFirst + part, plan.a_signed);
      const int64_t b = Part(Reg<uint32_t>(w, ip->b)[lane], kFirst + part, plan.b_signed);
      const int64_t exact = Compute(op, plan, a, b);
      const uint32_t value =
          plan.saturates ? Saturated(exact, kWidth, plan.d_signed) : static_cast<uint32_t>(exact);
      packed |= (value & ((1u << kWidth) - 1)) << kWidth * part;
      sum += static_cast<uint32_t>(exact);
    }
    Reg<uint32_t>(w, ip->d)[lane] = sums ? sum : packed;
  }
  return ip + 1;
}

// vmad: the product and the sum are exact, then shifted, then saturated.
const Inst* VideoMad(const Inst* ip, Warp* w) {
  const VideoPlan plan = UnpackVideo(ip->imm);
  for (uint32_t m = w->mask; m != 0; m &= m - 1) {
    const uint32_t lane = __builtin_ctz(m);
    const __int128 a = Part(Reg<uint32_t>(w, ip->a)[lane], plan.a_part, plan.a_signed);
    const __int128 b = Part(Reg<uint32_t>(w, ip->b)[lane], plan.b_part, plan.b_signed);
    const uint32_t bits = Reg<uint32_t>(w, ip->c)[lane];
    const bool is_signed = plan.a_signed || plan.b_signed;
    const int64_t c = is_signed ? static_cast<int64_t>(static_cast<int32_t>(bits)) : bits;
    const __int128 sum = (a * b + c + (plan.plus_one ? 1 : 0)) >> plan.mode;
    const int64_t value = static_cast<int64_t>(sum);
    Reg<uint32_t>(w, ip->d)[lane] =
        plan.saturates ? Saturated(value, 32, is_signed) : static_cast<uint32_t>(value);
  }
  return ip + 1;
}

}  // namespace

uint64_t PackVideo(const VideoPlan& plan) {
  return uint64_t{plan.op} | uint64_t{plan.d_signed} << 6 | uint64_t{plan.a_signed} << 7 |
         uint64_t{plan.b_signed} << 8 | uint64_t{plan.saturates} << 9 | uint64_t{plan.wraps} << 10 |
         uint64_t{plan.plus_one} << 11 | uint64_t{plan.combine} << 16 | uint64_t{plan.mode} << 24 |
         uint64_t{plan.d_part} << 32 | uint64_t{plan.a_part} << 36 | uint64_t{plan.b_part} << 40;
}

Handler VideoHandler(ptx::Op op) {
  if (op == ptx::Op::kVmad) return VideoMad;
  if (op <= ptx::Op::kVset) return VideoScalar;
  return op <= ptx::Op::kVset2 ? VideoVector<2> : VideoVector<4>;
}

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
