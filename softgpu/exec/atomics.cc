// atom and red. Blocks of a grid, and grids of other streams, run on several threads, so even
// shared memory's cousins in global memory use the processor's atomics; lanes go in order. A
// block's shared memory is its thread's alone and needs none.
#include <cstring>

#include "softgpu/exec/half_scalar.h"
#include "softgpu/exec/handlers.h"
#include "softgpu/exec/memory_access.h"

namespace softgpu::exec {
namespace {

using ptx::AtomOp;
using ptx::Type;

template <class To, class From>
To As(From from) {
  return __builtin_bit_cast(To, from);
}

// The value that `op` leaves, given bits of memory and operand.
template <class T, AtomOp kOp>
struct Integer {
  using Bits = std::make_unsigned_t<T>;
  static Bits Do(Bits old, Bits operand) {
    const T a = static_cast<T>(old), b = static_cast<T>(operand);
    switch (kOp) {
      case AtomOp::kAnd:
        return old & operand;
      case AtomOp::kOr:
        return old | operand;
      case AtomOp::kXor:
        return old ^ operand;
      case AtomOp::kAdd:
        return old + operand;
      case AtomOp::kInc:
        return old >= operand ? 0 : old + 1;
      case AtomOp::kDec:
        return old == 0 || old > operand ? operand : old - 1;
      case AtomOp::kMin:
        return a < b ? old : operand;
      case AtomOp::kMax:
        return a > b ? old : operand;
      default:
        return operand;
    }
  }
};

template <class F>
constexpr bool kExchanges = false;
template <class T>
constexpr bool kExchanges<Integer<T, AtomOp::kExch>> = true;

struct AddF32 {
  using Bits = uint32_t;
  static Bits Do(Bits old, Bits operand) {
    const float sum = As<float>(old) + As<float>(operand);
    return sum == sum ? As<uint32_t>(sum) : 0x7fffffff;
  }
};
struct AddF64 {
  using Bits = uint64_t;
  static Bits Do(Bits old, Bits operand) {
    return As<uint64_t>(As<double>(old) + As<double>(operand));
  }
};
template <bool kBf16>
struct AddHalf {
  using Bits = uint16_t;
  static Bits Do(Bits old, Bits operand) {
    if (kBf16) return scalar::FloatToBf16(scalar::Bf16ToFloat(old) + scalar::Bf16ToFloat(operand));
    return scalar::FloatToHalf(scalar::HalfToFloat(old) + scalar::HalfToFloat(operand));
  }
};
template <bool kBf16>
struct AddPair {
  using Bits = uint32_t;
  static Bits Do(Bits old, Bits operand) {
    const uint32_t low = AddHalf<kBf16>::Do(uint16_t(old), uint16_t(operand));
    const uint32_t high = AddHalf<kBf16>::Do(uint16_t(old >> 16), uint16_t(operand >> 16));
    return low | high << 16;
  }
};

// min and max of halves: -0 lies below +0, a NaN loses against a number.
template <bool kBf16, bool kMax>
struct BestHalf {
  using Bits = uint16_t;
  static Bits Do(Bits old, Bits operand) {
    const uint16_t infinity = kBf16 ? 0x7f80 : 0x7c00;
    if ((old & 0x7fff) > infinity) return (operand & 0x7fff) > infinity ? 0x7fff : operand;
    if ((operand & 0x7fff) > infinity) return old;
    const auto key = [](uint16_t bits) -> uint16_t {
      return (bits >> 15) != 0 ? ~bits : bits | 0x8000;
    };
    const bool less = key(operand) < key(old);
    return less == kMax ? old : operand;
  }
};
template <bool kBf16, bool kMax>
struct BestPair {
  using Bits = uint32_t;
  static Bits Do(Bits old, Bits operand) {
    using F = BestHalf<kBf16, kMax>;
    const uint32_t high = F::Do(uint16_t(old >> 16), uint16_t(operand >> 16));
    return F::Do(uint16_t(old), uint16_t(operand)) | high << 16;
  }
};

// The old value of `*at`, which becomes F of it.
template <class F>
typename F::Bits Update(std::byte* at, typename F::Bits operand) {
  using Bits = typename F::Bits;
  Bits* memory = reinterpret_cast<Bits*>(at);
  Bits old = __atomic_load_n(memory, __ATOMIC_ACQUIRE);
  // An exchange for what is there already need not write.
  if (kExchanges<F> && old == operand) return old;
  while (!__atomic_compare_exchange_n(memory, &old, F::Do(old, operand), true, __ATOMIC_ACQ_REL,
                                      __ATOMIC_RELAXED)) {
  }
  return old;
}

// Calls f(lane, place) for each running lane; false after a fault.
template <class F>
bool ForLanes(const Inst* ip, Warp* w, uint32_t bytes, F f) {
  MemoryShape shape;
  std::memcpy(&shape, &ip->aux, sizeof shape);
  for (uint32_t m = w->mask; m != 0; m &= m - 1) {
    const uint32_t lane = __builtin_ctz(m);
    const uint64_t base = shape.narrow_address
                              ? reinterpret_cast<const uint32_t*>(w->regs + ip->a)[lane]
                              : reinterpret_cast<const uint64_t*>(w->regs + ip->a)[lane];
    std::byte* at = Resolve(w, ip, lane, base + ip->imm, bytes, shape.space, true);
    if (at == nullptr) return false;
    f(lane, at);
  }
  return true;
}

// As Atomic<F> in shared memory, as long as addresses are good: the lanes that are done.
template <class F>
uint32_t UpdateShared(const Inst* ip, Warp* w, bool narrow) {
  using Bits = typename F::Bits;
  Bits* d = reinterpret_cast<Bits*>(w->regs + ip->d);
  const Bits* b = reinterpret_cast<const Bits*>(w->regs + ip->b);
  const uint32_t* narrow_addresses = reinterpret_cast<const uint32_t*>(w->regs + ip->a);
  const uint64_t* addresses = reinterpret_cast<const uint64_t*>(w->regs + ip->a);
  uint32_t done = 0;
  for (uint32_t m = w->mask; m != 0; m &= m - 1) {
    const uint32_t lane = __builtin_ctz(m);
    const uint64_t at = (narrow ? narrow_addresses[lane] : addresses[lane]) + ip->imm;
    if (at % sizeof(Bits) != 0 || at >= w->shared_bytes || w->shared_bytes - at < sizeof(Bits))
      break;
    Bits* memory = reinterpret_cast<Bits*>(w->shared + at);
    const Bits old = *memory;
    *memory = F::Do(old, b[lane]);
    d[lane] = old;
    done |= m & (0 - m);
  }
  return done;
}

// Lanes of the warp that wait for others may have waited for this.
void TellWaiting(Warp* w) {
  if (w->turn.rest > 1) w->turn.rest = 1;
}

template <class F>
const Inst* Atomic(const Inst* ip, Warp* w) {
  TellWaiting(w);
  using Bits = typename F::Bits;
  Bits* d = reinterpret_cast<Bits*>(w->regs + ip->d);
  const Bits* b = reinterpret_cast<const Bits*>(w->regs + ip->b);
  MemoryShape shape;
  std::memcpy(&shape, &ip->aux, sizeof shape);
  if (static_cast<ptx::Space>(shape.space) == ptx::Space::kShared) {
    const uint32_t all = w->mask, left = all & ~UpdateShared<F>(ip, w, shape.narrow_address != 0);
    if (left == 0) return ip + 1;
    w->mask = left;  // the first one faults
  }
  const bool ok = ForLanes(ip, w, sizeof(Bits),
                           [&](uint32_t lane, std::byte* at) { d[lane] = Update<F>(at, b[lane]); });
  return ok ? ip + 1 : nullptr;
}

template <class Bits>
const Inst* CompareAndSwap(const Inst* ip, Warp* w) {
  TellWaiting(w);
  Bits* d = reinterpret_cast<Bits*>(w->regs + ip->d);
  const Bits* b = reinterpret_cast<const Bits*>(w->regs + ip->b);
  const Bits* c = reinterpret_cast<const Bits*>(w->regs + ip->c);
  const bool ok = ForLanes(ip, w, sizeof(Bits), [&](uint32_t lane, std::byte* at) {
    // A failing one only reads, so that spinning lanes leave the cache line to the lock's holder.
    Bits* const memory = reinterpret_cast<Bits*>(at);
    Bits seen = __atomic_load_n(memory, __ATOMIC_ACQUIRE);
    if (seen == b[lane]) {
      __atomic_compare_exchange_n(memory, &seen, c[lane], false, __ATOMIC_ACQ_REL,
                                  __ATOMIC_ACQUIRE);
    }
    d[lane] = seen;
  });
  return ok ? ip + 1 : nullptr;
}

// Writes `desired` when `*at` is `*expected`; else reads it.
bool Exchange128(std::byte* at, uint64_t expected[2], const uint64_t desired[2]) {
  bool done;
  asm volatile("lock cmpxchg16b %1"
               : "=@ccz"(done), "+m"(*reinterpret_cast<unsigned __int128*>(at)), "+a"(expected[0]),
                 "+d"(expected[1])
               : "b"(desired[0]), "c"(desired[1])
               : "memory");
  return done;
}
template <bool kCompares>
const Inst* Atomic128(const Inst* ip, Warp* w) {
  const bool ok = ForLanes(ip, w, 16, [&](uint32_t lane, std::byte* at) {
    const auto reg = [&](uint32_t offset) {
      return reinterpret_cast<uint64_t*>(w->regs + offset) + 2 * lane;
    };
    uint64_t old[2] = {};
    if (kCompares) std::memcpy(old, reg(ip->b), sizeof old);
    const uint64_t* desired = reg(kCompares ? ip->c : ip->b);
    while (!Exchange128(at, old, desired) && !kCompares) {
    }
    std::memcpy(reg(ip->d), old, sizeof old);
  });
  return ok ? ip + 1 : nullptr;
}

// What a function becomes: a handler over lanes, or of one element.
template <class F>
struct OfLanes {
  static constexpr Handler kRun = Atomic<F>;
};
template <class F>
struct OfElement {
  static void Run(std::byte* at, const std::byte* operand) {
    typename F::Bits bits;
    std::memcpy(&bits, operand, sizeof bits);
    Update<F>(at, bits);
  }
  static constexpr ElementUpdate kRun = Run;
};
template <template <class> class As>
using RunOf = std::remove_const_t<decltype(As<AddF32>::kRun)>;

template <template <class> class As, bool kBf16>
RunOf<As> OfHalf(AtomOp op) {
  if (op == AtomOp::kMin) return As<BestHalf<kBf16, false>>::kRun;
  if (op == AtomOp::kMax) return As<BestHalf<kBf16, true>>::kRun;
  return op == AtomOp::kAdd ? As<AddHalf<kBf16>>::kRun : nullptr;
}
template <template <class> class As, bool kBf16>
RunOf<As> OfPair(AtomOp op) {
  if (op == AtomOp::kMin) return As<BestPair<kBf16, false>>::kRun;
  if (op == AtomOp::kMax) return As<BestPair<kBf16, true>>::kRun;
  return op == AtomOp::kAdd ? As<AddPair<kBf16>>::kRun : nullptr;
}

template <template <class> class As, class T>
RunOf<As> OfInteger(AtomOp op) {
  switch (op) {
    case AtomOp::kAnd:
      return As<Integer<T, AtomOp::kAnd>>::kRun;
    case AtomOp::kOr:
      return As<Integer<T, AtomOp::kOr>>::kRun;
    case AtomOp::kXor:
      return As<Integer<T, AtomOp::kXor>>::kRun;
    case AtomOp::kAdd:
      return As<Integer<T, AtomOp::kAdd>>::kRun;
    case AtomOp::kInc:
      return As<Integer<T, AtomOp::kInc>>::kRun;
    case AtomOp::kDec:
      return As<Integer<T, AtomOp::kDec>>::kRun;
    case AtomOp::kMin:
      return As<Integer<T, AtomOp::kMin>>::kRun;
    case AtomOp::kMax:
      return As<Integer<T, AtomOp::kMax>>::kRun;
    case AtomOp::kExch:
      return As<Integer<T, AtomOp::kExch>>::kRun;
    default:
      return nullptr;
  }
}

template <template <class> class As>
RunOf<As> Choose(AtomOp op, Type type) {
  switch (type) {
    case Type::kB32:
    case Type::kU32:
      return OfInteger<As, uint32_t>(op);
    case Type::kS32:
      return OfInteger<As, int32_t>(op);
    case Type::kB64:
    case Type::kU64:
      return OfInteger<As, uint64_t>(op);
    case Type::kS64:
      return OfInteger<As, int64_t>(op);
    case Type::kF32:
      if (op == AtomOp::kExch) return OfInteger<As, uint32_t>(op);
      return op == AtomOp::kAdd ? As<AddF32>::kRun : nullptr;
    case Type::kF64:
      if (op == AtomOp::kExch) return OfInteger<As, uint64_t>(op);
      return op == AtomOp::kAdd ? As<AddF64>::kRun : nullptr;
    case Type::kF16:
      return OfHalf<As, false>(op);
    case Type::kBF16:
      return OfHalf<As, true>(op);
    case Type::kF16x2:
      return OfPair<As, false>(op);
    case Type::kBF16x2:
      return OfPair<As, true>(op);
    default:
      return nullptr;
  }
}

Handler CompareAndSwapOf(uint32_t bits) {
  switch (bits) {
    case 16:
      return CompareAndSwap<uint16_t>;
    case 32:
      return CompareAndSwap<uint32_t>;
    case 64:
      return CompareAndSwap<uint64_t>;
    default:
      return nullptr;
  }
}

}  // namespace

Handler AtomicHandler(uint8_t op_number, Type type) {
  const AtomOp op = static_cast<AtomOp>(op_number);
  if (type == Type::kB128) return op == AtomOp::kCas ? Atomic128<true> : Atomic128<false>;
  return op == AtomOp::kCas ? CompareAndSwapOf(ptx::Bits(type)) : Choose<OfLanes>(op, type);
}

ElementUpdate AtomicElement(uint8_t op, Type type) {
  return Choose<OfElement>(static_cast<AtomOp>(op), type);
}

}  // namespace softgpu::exec
