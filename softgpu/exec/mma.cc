// mma.sync, ldmatrix, stmatrix, movmatrix. An mma gathers its operands from all lanes into plain
// matrices, multiplies with sums in double (one rounding at the end; the hardware's order is not
// specified) and deals the result out. Thread safety: a warp's own thread.
#include <cstring>

#include "softgpu/exec/handlers.h"
#include "softgpu/exec/matrix_elements.h"
#include "softgpu/exec/memory_access.h"
#include "softgpu/exec/schedule.h"

namespace softgpu::exec {
namespace {

using ptx::Type;

uint32_t* Reg(Warp* w, uint32_t offset) { return reinterpret_cast<uint32_t*>(w->regs + offset); }

// Four lanes share a row of a and a column of b; a second register lies eight rows below, or where
// these end, further along k.
void Gather(Warp* w, const MatrixPlan& plan, Matrices* m) {
  const ptx::MatrixShape& shape = plan.shape;
  const uint32_t per = shape.per_register, halves = shape.m / 8;
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    const uint32_t group = lane >> 2, first = (lane & 3) * per;
    for (uint32_t r = 0; r < shape.a; ++r) {
      const uint64_t bits = FragmentRegister(w, plan.a[r], lane, plan.a_type);
      const uint32_t row = group + 8 * (r % halves), column = first + 4 * per * (r / halves);
      for (uint32_t i = 0; i < per; ++i) {
        m->a[row * shape.k + column + i] = Element(bits, plan.a_type, i);
      }
    }
    for (uint32_t r = 0; r < shape.b; ++r) {
      const uint64_t bits = FragmentRegister(w, plan.b[r], lane, plan.b_type);
      for (uint32_t i = 0; i < per; ++i) {
        m->b[(first + 4 * per * r + i) * shape.n + group] = Element(bits, plan.b_type, i);
      }
    }
  }
}

// Accumulators: two neighbours of a row per lane, then eight rows below.
template <class F>
void ForAccumulators(const MatrixPlan& plan, Type type, const uint32_t* registers, F f) {
  const bool halves = type == Type::kF16;
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    for (uint32_t e = 0; e < plan.shape.m / 4; ++e) {
      const uint32_t at = ((lane >> 2) + 8 * (e / 2)) * plan.shape.n + (lane & 3) * 2 + e % 2;
      f(lane, registers[halves ? e / 2 : e], halves ? e % 2 : 0, at);
    }
  }
}

// Lane 8 j + r holds the address of row r of matrix j.
std::byte* RowOf(const Inst* ip, Warp* w, const MatrixPlan& plan, uint32_t lane, bool is_store) {
  const uint64_t base = plan.narrow_address
                            ? Reg(w, ip->a)[lane]
                            : reinterpret_cast<const uint64_t*>(w->regs + ip->a)[lane];
  return Resolve(w, ip, lane, base + ip->imm, 16, plan.space, is_store);
}

}  // namespace

const Inst* Mma(const Inst* ip, Warp* w) {
  const Inst* next = nullptr;
  if (MustWait(ip, w, kFullMask, &next)) return next;
  const MatrixPlan& plan = w->frame->code->matrices[ip->aux];
  Matrices m;
  Gather(w, plan, &m);
  ForAccumulators(plan, plan.c_type, plan.c,
                  [&](uint32_t lane, uint32_t reg, uint32_t i, uint32_t at) {
                    m.c[at] = Element(FragmentRegister(w, reg, lane, plan.c_type), plan.c_type, i);
                  });
  Multiply(&m, plan.shape.m, plan.shape.n, plan.shape.k, plan.combine, plan.a_type == Type::kF64);
  ForAccumulators(
      plan, plan.d_type, plan.d, [&](uint32_t lane, uint32_t reg, uint32_t i, uint32_t at) {
        if ((w->mask >> lane & 1) == 0) return;
        const uint64_t bits = AccumulatorBits(m.c[at], plan.d_type, plan.saturates);
        if (plan.d_type != Type::kF16) {
          SetFragmentRegister(w, reg, lane, plan.d_type, bits);
        } else {
          reinterpret_cast<uint16_t*>(&Reg(w, reg)[lane])[i] = static_cast<uint16_t>(bits);
        }
      });
  return ip + 1;
}

const Inst* LoadMatrix(const Inst* ip, Warp* w) {
  const Inst* next = nullptr;
  if (MustWait(ip, w, kFullMask, &next)) return next;
  const MatrixPlan& plan = w->frame->code->matrices[ip->aux];
  uint16_t elements[4][8][8];
  for (uint32_t lane = 0; lane < plan.shape.d * 8; ++lane) {
    const std::byte* at = RowOf(ip, w, plan, lane, false);
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

const Inst* StoreMatrix(const Inst* ip, Warp* w) {
  const Inst* next = nullptr;
  if (MustWait(ip, w, kFullMask, &next)) return next;
  const MatrixPlan& plan = w->frame->code->matrices[ip->aux];
  for (uint32_t j = 0; j < plan.shape.d; ++j) {
    uint16_t elements[8][8];
    for (uint32_t lane = 0; lane < kLanes; ++lane) {
      const uint32_t row = lane / 4, column = lane % 4 * 2, pair = Reg(w, plan.d[j])[lane];
      for (uint32_t i = 0; i < 2; ++i) {
        const uint16_t value = static_cast<uint16_t>(pair >> 16 * i);
        (plan.transposes ? elements[column + i][row] : elements[row][column + i]) = value;
      }
    }
    for (uint32_t row = 0; row < 8; ++row) {
      std::byte* at = RowOf(ip, w, plan, 8 * j + row, true);
      if (at == nullptr) return nullptr;
      std::memcpy(at, elements[row], 16);
    }
  }
  return ip + 1;
}

const Inst* TransposeMatrix(const Inst* ip, Warp* w) {
  const Inst* next = nullptr;
  if (MustWait(ip, w, kFullMask, &next)) return next;
  uint32_t source[kLanes];
  std::memcpy(source, Reg(w, ip->a), sizeof source);
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    uint32_t pair = 0;
    for (uint32_t i = 0; i < 2; ++i) {  // element (row, column) was (column, row)
      const uint32_t row = lane % 4 * 2 + i, column = lane / 4;
      pair |= (source[row * 4 + column / 2] >> 16 * (column % 2) & 0xffff) << 16 * i;
    }
    if ((w->mask >> lane & 1) != 0) Reg(w, ip->d)[lane] = pair;
  }
  return ip + 1;
}

}  // namespace softgpu::exec
