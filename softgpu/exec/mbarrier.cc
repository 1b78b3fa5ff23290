// mbarriers and bulk copies. An mbarrier is a word of shared memory: bits 0-19 arrivals that the
// phase still misses, 20-39 arrivals per phase, 40-62 bytes that it still misses (biased), 63 the
// phase. A block runs on one thread, so plain loads and stores do. Thread safety: a warp's own
// thread.
#include <cstring>

#include "softgpu/exec/check.h"
#include "softgpu/exec/handlers.h"
#include "softgpu/exec/memory_access.h"
#include "softgpu/exec/schedule.h"

namespace softgpu::exec {
namespace {

constexpr uint64_t kCount = (1 << 20) - 1;
constexpr int64_t kBias = 1 << 22;

struct Phase {
  uint64_t pending, expected;
  int64_t bytes;
  uint64_t phase;

  explicit Phase(uint64_t word)
      : pending(word & kCount),
        expected(word >> 20 & kCount),
        bytes(static_cast<int64_t>(word >> 40 & 0x7fffff) - kBias),
        phase(word >> 63) {}
  uint64_t Word() const {
    return pending | expected << 20 | (static_cast<uint64_t>(bytes + kBias) & 0x7fffff) << 40 |
           phase << 63;
  }
  void Arrive(uint64_t count) { pending = (pending - count) & kCount; }
  void EndPhaseWhenComplete() {
    if (pending != 0 || bytes != 0) return;
    phase ^= 1;
    pending = expected;
  }
};

uint64_t Value(const Warp* w, uint32_t offset, uint32_t lane) {
  return reinterpret_cast<const uint64_t*>(w->regs + offset)[lane];
}
uint32_t Word(const Warp* w, uint32_t offset, uint32_t lane) {
  return reinterpret_cast<const uint32_t*>(w->regs + offset)[lane];
}

// f(lane, barrier) for each running lane; what it leaves is stored. False after a fault.
template <class F>
bool ForBarriers(const Inst* ip, Warp* w, F f) {
  for (uint32_t m = w->mask; m != 0; m &= m - 1) {
    const uint32_t lane = __builtin_ctz(m);
    std::byte* at =
        Resolve(w, ip, lane, Value(w, ip->a, lane), 8, static_cast<uint8_t>(ip->aux), true);
    if (at == nullptr) return false;
    uint64_t word;
    std::memcpy(&word, at, sizeof word);
    Phase barrier(word);
    f(lane, &barrier, word);
    word = barrier.Word();
    std::memcpy(at, &word, sizeof word);
  }
  return true;
}

}  // namespace

const Inst* MbarrierInit(const Inst* ip, Warp* w) {
  const bool ok = ForBarriers(ip, w, [&](uint32_t lane, Phase* barrier, uint64_t) {
    *barrier = Phase(0);
    barrier->bytes = 0;
    barrier->pending = barrier->expected = Word(w, ip->b, lane) & kCount;
  });
  return ok ? ip + 1 : nullptr;
}

const Inst* MbarrierTransfer(const Inst* ip, Warp* w) {
  const bool completes = ip->imm != 0;
  const bool ok = ForBarriers(ip, w, [&](uint32_t lane, Phase* barrier, uint64_t) {
    const int64_t bytes = Word(w, ip->b, lane);
    barrier->bytes += completes ? -bytes : bytes;
    if (completes) barrier->EndPhaseWhenComplete();
  });
  return ok ? ip + 1 : nullptr;
}

const Inst* MbarrierArrive(const Inst* ip, Warp* w) {
  uint64_t* d = reinterpret_cast<uint64_t*>(w->regs + ip->d);
  const bool expects = (ip->imm & 1) != 0, drops = (ip->imm & 2) != 0;
  const bool ok = ForBarriers(ip, w, [&](uint32_t lane, Phase* barrier, uint64_t before) {
    const uint32_t operand = Word(w, ip->b, lane);
    const uint64_t count = expects ? 1 : operand;
    if (expects) barrier->bytes += operand;
    if (drops) barrier->expected = (barrier->expected - count) & kCount;
    barrier->Arrive(count);
    d[lane] = before;
    barrier->EndPhaseWhenComplete();
  });
  return ok ? ip + 1 : nullptr;
}

// A warp that waits in vain lets others run: all lanes must come for a phase to end.
const Inst* MbarrierWait(const Inst* ip, Warp* w) {
  const bool parity = (ip->imm & 1) != 0, yields = (ip->imm & 2) != 0;
  uint32_t over = 0;
  const bool ok = ForBarriers(ip, w, [&](uint32_t lane, Phase* barrier, uint64_t) {
    const uint64_t waited = parity ? Word(w, ip->b, lane) & 1 : Value(w, ip->b, lane) >> 63;
    if (barrier->phase != waited) over |= 1u << lane;
  });
  if (!ok) return nullptr;
  uint32_t& d = *reinterpret_cast<uint32_t*>(w->regs + ip->d);
  d = (d & ~w->mask) | over;
  // What others did before they arrived is known to who saw the phase end.
  if (over != 0 && w->block->shadow != nullptr) w->block->shadow->Synchronise(w->index);
  if (over == w->mask || !yields) return ip + 1;
  Park(w, ip + 1);
  w->stop = Stop::kYield;
  return nullptr;
}

const Inst* MbarrierPending(const Inst* ip, Warp* w) {
  uint32_t* d = reinterpret_cast<uint32_t*>(w->regs + ip->d);
  for (uint32_t m = w->mask; m != 0; m &= m - 1) {
    const uint32_t lane = __builtin_ctz(m);
    d[lane] = static_cast<uint32_t>(Value(w, ip->a, lane) & kCount);
  }
  return ip + 1;
}

namespace {

constexpr uint32_t kPiece = 16;

// put(target, piece) for every 16 bytes of the source. imm: space of the target, << 8: of the
// source.
template <class F>
const Inst* ForPieces(const Inst* ip, Warp* w, F put) {
  for (uint32_t m = w->mask; m != 0; m &= m - 1) {
    const uint32_t lane = __builtin_ctz(m);
    const uint64_t to = Value(w, ip->a, lane), from = Value(w, ip->b, lane);
    const uint32_t bytes = Word(w, ip->c, lane);
    if (bytes % kPiece != 0) {
      return RaiseFault(ip, w, static_cast<int>(lane), CUDA_ERROR_ILLEGAL_INSTRUCTION,
                        "bulk copy of " + std::to_string(bytes) + " bytes, no multiple of 16");
    }
    for (uint64_t at = 0; at < bytes; at += kPiece) {
      const std::byte* source =
          Resolve(w, ip, lane, from + at, kPiece, static_cast<uint8_t>(ip->imm >> 8), false);
      if (source == nullptr) return nullptr;
      std::byte piece[kPiece];
      std::memcpy(piece, source, kPiece);  // a page fault names who was resolved last
      std::byte* target =
          Resolve(w, ip, lane, to + at, kPiece, static_cast<uint8_t>(ip->imm), true);
      if (target == nullptr) return nullptr;
      put(target, piece);
    }
  }
  return ip + 1;
}

}  // namespace

const Inst* CopyBulk(const Inst* ip, Warp* w) {
  return ForPieces(
      ip, w, [](std::byte* target, const std::byte* piece) { std::memcpy(target, piece, kPiece); });
}

const Inst* ReduceBulk(const Inst* ip, Warp* w) {
  const ptx::Type type = static_cast<ptx::Type>(ip->aux >> 8);
  const ElementUpdate update = AtomicElement(static_cast<uint8_t>(ip->aux), type);
  const uint32_t step = ptx::Bytes(type);
  return ForPieces(ip, w, [&](std::byte* target, const std::byte* piece) {
    for (uint32_t at = 0; at < kPiece; at += step) update(target + at, piece + at);
  });
}

}  // namespace softgpu::exec
