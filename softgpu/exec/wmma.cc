// wmma: fragments between memory and registers in the layout of ptx::FragmentOf, and their product.
// Thread safety: a warp's own thread.
#include <cstring>

#include "softgpu/exec/handlers.h"
#include "softgpu/exec/matrix_elements.h"
#include "softgpu/exec/memory_access.h"
#include "softgpu/exec/schedule.h"

namespace softgpu::exec {
namespace {

using ptx::Fragment;
using ptx::Type;

// Calls f(lane, register, element of the register, row, column) for every element.
template <class F>
void ForElements(const Fragment& fragment, F f) {
  const uint32_t per_lane = fragment.registers * fragment.per_register;
  for (uint32_t e = 0; e < fragment.rows * fragment.columns; ++e) {
    const uint32_t slot = e % per_lane;
    f(e / per_lane, slot / fragment.per_register, slot % fragment.per_register,
      e / fragment.columns, e % fragment.columns);
  }
}

void Gather(const Warp* w, const Fragment& fragment, const uint32_t* registers, double* to) {
  ForElements(fragment, [&](uint32_t lane, uint32_t r, uint32_t i, uint32_t row, uint32_t column) {
    to[row * fragment.columns + column] =
        Element(FragmentRegister(w, registers[r], lane, fragment.type), fragment.type, i);
  });
}

// Where element (row, column) lies: its byte, and its bit there for types smaller than that.
struct Place {
  uint64_t address;
  uint32_t bit;
};
Place PlaceOf(const WmmaPlan& plan, uint64_t base, uint64_t stride, uint32_t row, uint32_t column) {
  const uint64_t index = plan.column_major ? column * stride + row : row * stride + column;
  const uint64_t bits = index * ptx::Bits(plan.fragment.type);
  return {base + bits / 8, static_cast<uint32_t>(bits % 8)};
}

uint64_t Base(const Inst* ip, const Warp* w, const WmmaPlan& plan) {
  const int lane = __builtin_ctz(w->mask);
  return ip->imm + (plan.narrow_address ? reinterpret_cast<const uint32_t*>(w->regs + ip->a)[lane]
                                        : reinterpret_cast<const uint64_t*>(w->regs + ip->a)[lane]);
}

uint64_t Stride(const Inst* ip, const Warp* w, const WmmaPlan& plan) {
  if (plan.has_stride) {
    return reinterpret_cast<const uint32_t*>(w->regs + ip->b)[__builtin_ctz(w->mask)];
  }
  return plan.column_major ? plan.fragment.rows : plan.fragment.columns;
}

}  // namespace

const Inst* WmmaLoad(const Inst* ip, Warp* w) {
  const Inst* next = nullptr;
  if (MustWait(ip, w, kFullMask, &next)) return next;
  const WmmaPlan& plan = w->frame->code->wmmas[ip->aux];
  const Fragment& fragment = plan.fragment;
  const uint32_t bits = ptx::Bits(fragment.type), bytes = bits < 8 ? 1 : bits / 8;
  const uint64_t base = Base(ip, w, plan), stride = Stride(ip, w, plan);
  uint64_t values[kLanes][8] = {};
  bool faulted = false;
  ForElements(fragment, [&](uint32_t lane, uint32_t r, uint32_t i, uint32_t row, uint32_t column) {
    if (faulted) return;
    const Place place = PlaceOf(plan, base, stride, row, column);
    const std::byte* at = Resolve(w, ip, lane, place.address, bytes, plan.space, false);
    faulted = at == nullptr;
    if (faulted) return;
    uint64_t value = 0;
    std::memcpy(&value, at, bytes);
    if (bits < 8) value = value >> place.bit & ((1u << bits) - 1);
    values[lane][r] |= value << (bits % 64) * i;
  });
  if (faulted) return nullptr;
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    for (uint32_t r = 0; r < fragment.registers; ++r) {
      SetFragmentRegister(w, plan.registers[r], lane, fragment.type, values[lane][r]);
    }
  }
  return ip + 1;
}

const Inst* WmmaStore(const Inst* ip, Warp* w) {
  const Inst* next = nullptr;
  if (MustWait(ip, w, kFullMask, &next)) return next;
  const WmmaPlan& plan = w->frame->code->wmmas[ip->aux];
  const Fragment& fragment = plan.fragment;
  const uint32_t bytes = ptx::Bytes(fragment.type);
  const uint64_t base = Base(ip, w, plan), stride = Stride(ip, w, plan);
  bool faulted = false;
  ForElements(fragment, [&](uint32_t lane, uint32_t r, uint32_t i, uint32_t row, uint32_t column) {
    if (faulted) return;
    const Place place = PlaceOf(plan, base, stride, row, column);
    std::byte* at = Resolve(w, ip, lane, place.address, bytes, plan.space, true);
    faulted = at == nullptr;
    if (faulted) return;
    const uint64_t value = FragmentRegister(w, plan.registers[r], lane, fragment.type) >> 16 * i;
    std::memcpy(at, &value, bytes);
  });
  return faulted ? nullptr : ip + 1;
}

const Inst* WmmaMultiply(const Inst* ip, Warp* w) {
  const Inst* next = nullptr;
  if (MustWait(ip, w, kFullMask, &next)) return next;
  const WmmaPlan& plan = w->frame->code->wmmas[ip->aux];
  Matrices m;
  Gather(w, plan.a, plan.a_registers, m.a);
  Gather(w, plan.b, plan.b_registers, m.b);
  Gather(w, plan.c, plan.c_registers, m.c);
  Multiply(&m, plan.a.rows, plan.b.columns, plan.a.columns, plan.combine,
           plan.a.type == Type::kF64);
  uint64_t values[kLanes][8] = {};
  const Fragment& d = plan.fragment;
  ForElements(d, [&](uint32_t lane, uint32_t r, uint32_t i, uint32_t row, uint32_t column) {
    const double value = m.c[row * d.columns + column];
    values[lane][r] |= AccumulatorBits(value, d.type, plan.saturates) << 16 * i;
  });
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    for (uint32_t r = 0; r < d.registers; ++r) {
      SetFragmentRegister(w, plan.registers[r], lane, d.type, values[lane][r]);
    }
  }
  return ip + 1;
}

}  // namespace softgpu::exec
