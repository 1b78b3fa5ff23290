// mma.sync and ldmatrix. An mma gathers its operands from all lanes into plain matrices, multiplies
// with sums in double (one rounding at the end; the hardware's order is not specified) and deals
// the result out. Thread safety: a warp's own thread.
#include <algorithm>
#include <cstring>

#include "softgpu/exec/half_scalar.h"
#include "softgpu/exec/handlers.h"
#include "softgpu/exec/memory_access.h"
#include "softgpu/exec/schedule.h"

namespace softgpu::exec {
namespace {

using ptx::Type;

uint32_t* Reg(Warp* w, uint32_t offset) { return reinterpret_cast<uint32_t*>(w->regs + offset); }

// Element `i` of a register.
double Element(uint32_t bits, Type type, uint32_t i) {
  switch (type) {
    case Type::kF16:
      return scalar::HalfToFloat(static_cast<uint16_t>(bits >> 16 * i));
    case Type::kBF16:
      return scalar::Bf16ToFloat(static_cast<uint16_t>(bits >> 16 * i));
    case Type::kTF32:
      return __builtin_bit_cast(float, bits & ~0x1fffu);  // ten bits of mantissa
    case Type::kS8:
      return static_cast<int8_t>(bits >> 8 * i);
    case Type::kU8:
      return static_cast<uint8_t>(bits >> 8 * i);
    case Type::kS32:
      return static_cast<int32_t>(bits);
    default:
      return __builtin_bit_cast(float, bits);
  }
}

uint32_t Integer(double x, bool saturates) {
  if (saturates) x = std::clamp(x, -0x1p31, 0x1p31 - 1);
  return static_cast<uint32_t>(static_cast<int64_t>(x));
}

struct Matrices {
  double a[16][32], b[32][8], c[16][8];
};

void Gather(Warp* w, const MatrixPlan& plan, Matrices* m) {
  const uint32_t n = plan.shape.per_register;
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    const uint32_t group = lane >> 2, in_group = lane & 3;
    for (uint32_t r = 0; r < plan.shape.a; ++r) {
      for (uint32_t i = 0; i < n; ++i) {
        m->a[group + 8 * (r & 1)][in_group * n + i + 4 * n * (r >> 1)] =
            Element(Reg(w, plan.a[r])[lane], plan.a_type, i);
      }
    }
    for (uint32_t r = 0; r < plan.shape.b; ++r) {
      for (uint32_t i = 0; i < n; ++i) {
        m->b[in_group * n + i + 4 * n * r][group] =
            Element(Reg(w, plan.b[r])[lane], plan.b_type, i);
      }
    }
    const bool halves = plan.d_type == Type::kF16;
    for (uint32_t e = 0; e < 4; ++e) {
      const uint32_t bits = Reg(w, plan.c[halves ? e / 2 : e])[lane];
      m->c[group + 8 * (e / 2)][in_group * 2 + e % 2] =
          Element(bits, plan.d_type, halves ? e % 2 : 0);
    }
  }
}

}  // namespace

const Inst* Mma(const Inst* ip, Warp* w) {
  const Inst* next = nullptr;
  if (MustWait(ip, w, kFullMask, &next)) return next;
  const MatrixPlan& plan = w->frame->code->matrices[ip->aux];
  Matrices m;
  Gather(w, plan, &m);
  for (uint32_t row = 0; row < 16; ++row) {
    for (uint32_t column = 0; column < 8; ++column) {
      double sum = m.c[row][column];
      for (uint32_t k = 0; k < plan.shape.k; ++k) sum += m.a[row][k] * m.b[k][column];
      m.c[row][column] = sum;
    }
  }
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    if ((w->mask >> lane & 1) == 0) continue;
    for (uint32_t e = 0; e < 4; ++e) {
      const double value = m.c[(lane >> 2) + 8 * (e / 2)][(lane & 3) * 2 + e % 2];
      if (plan.d_type == Type::kF16) {
        uint16_t* pair = reinterpret_cast<uint16_t*>(&Reg(w, plan.d[e / 2])[lane]);
        pair[e % 2] = scalar::FloatToHalf(static_cast<float>(value));
      } else if (plan.d_type == Type::kS32) {
        Reg(w, plan.d[e])[lane] = Integer(value, plan.saturates);
      } else {
        const float f = static_cast<float>(value);
        Reg(w, plan.d[e])[lane] = f == f ? __builtin_bit_cast(uint32_t, f) : 0x7fffffffu;
      }
    }
  }
  return ip + 1;
}

// Lane 8 j + r holds the address of row r of matrix j.
const Inst* LoadMatrix(const Inst* ip, Warp* w) {
  const Inst* next = nullptr;
  if (MustWait(ip, w, kFullMask, &next)) return next;
  const MatrixPlan& plan = w->frame->code->matrices[ip->aux];
  uint16_t elements[4][8][8];
  for (uint32_t lane = 0; lane < plan.shape.d * 8; ++lane) {
    const uint64_t base = plan.narrow_address
                              ? Reg(w, ip->a)[lane]
                              : reinterpret_cast<const uint64_t*>(w->regs + ip->a)[lane];
    const std::byte* at = Resolve(w, ip, lane, base + ip->imm, 16, plan.space, false);
    if (at == nullptr) return nullptr;
    std::memcpy(elements[lane / 8][lane % 8], at, 16);
  }
  for (uint32_t j = 0; j < plan.shape.d; ++j) {
    for (uint32_t lane = 0; lane < kLanes; ++lane) {
      const uint32_t row = lane / 4, column = lane % 4 * 2;
      const uint16_t* e = elements[j][row] + column;
      const uint32_t low = plan.transposes ? elements[j][column][row] : e[0];
      const uint32_t high = plan.transposes ? elements[j][column + 1][row] : e[1];
      Reg(w, plan.d[j])[lane] = low | high << 16;
    }
  }
  return ip + 1;
}

}  // namespace softgpu::exec
