// Special registers, kernel parameters, addresses of local memory, packing of registers.
#include <time.h>

#include <cstring>

#include "softgpu/exec/handlers.h"

namespace softgpu::exec {
namespace {

using ptx::Special;

uint64_t Nanoseconds() {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

// Where the thread stands in its block and grid.
uint64_t PlaceOf(Special special, Warp* w, uint32_t lane) {
  const Block& block = *w->block;
  const Launch& launch = *block.state->launch;
  switch (special) {
    case Special::kTidX:
      return w->tid[0][lane];
    case Special::kTidY:
      return w->tid[1][lane];
    case Special::kTidZ:
      return w->tid[2][lane];
    case Special::kNtidX:
      return launch.block.x;
    case Special::kNtidY:
      return launch.block.y;
    case Special::kNtidZ:
      return launch.block.z;
    case Special::kCtaidX:
      return block.id.x;
    case Special::kCtaidY:
      return block.id.y;
    case Special::kCtaidZ:
      return block.id.z;
    case Special::kNctaidX:
      return launch.grid.x;
    case Special::kNctaidY:
      return launch.grid.y;
    case Special::kNctaidZ:
      return launch.grid.z;
    default:
      return 0;
  }
}

uint64_t ValueOf(Special special, Warp* w, uint32_t lane) {
  const Block& block = *w->block;
  const Launch& launch = *block.state->launch;
  if (special <= Special::kNctaidZ) return PlaceOf(special, w, lane);
  switch (special) {
    case Special::kLaneId:
      return lane;
    case Special::kWarpId:
      return w->index;
    case Special::kNWarpId:
      return kWarpsMax * 2;
    case Special::kSmId: {
      const uint64_t linear = block.id.x + uint64_t{launch.grid.x} *
                                               (block.id.y + uint64_t{launch.grid.y} * block.id.z);
      return linear % std::max(launch.sm_count, 1u);
    }
    case Special::kNSmId:
      return launch.sm_count;
    case Special::kGridId:
      return launch.grid_id;
    case Special::kClock:
    case Special::kClock64:
      return __builtin_ia32_rdtsc();
    case Special::kClockHi:
      return __builtin_ia32_rdtsc() >> 32;
    case Special::kGlobalTimer:
    case Special::kGlobalTimerLo:
      return Nanoseconds();
    case Special::kGlobalTimerHi:
      return Nanoseconds() >> 32;
    case Special::kLanemaskEq:
      return 1u << lane;
    case Special::kLanemaskLt:
      return (1u << lane) - 1;
    case Special::kLanemaskLe:
      return (2ull << lane) - 1;
    case Special::kLanemaskGt:
      return ~((2ull << lane) - 1);
    case Special::kLanemaskGe:
      return ~((1ull << lane) - 1);
    case Special::kDynamicSharedSize:
      return launch.dynamic_shared_bytes;
    case Special::kTotalSharedSize:
      return block.state->shared_bytes;
    case Special::kWarpSize:
      return kLanes;
    case Special::kEnvreg1:
      return launch.cooperative ? ptx::kGridWindow >> 32 : 0;
    case Special::kEnvreg2:
      return launch.cooperative ? ptx::kGridWindow & 0xffffffff : 0;
    case Special::kOne:
      return 1;
    default:  // kZero, kNone
      return 0;
  }
}

template <class T>
const Inst* ReadSpecial(const Inst* ip, Warp* w) {
  const Special special = static_cast<Special>(ip->imm);
  T* d = Reg<T>(w, ip->d);
  const uint32_t mask = w->mask;
  if (special <= Special::kTidZ) {
    const uint32_t* tid = w->tid[static_cast<int>(special)];
    for (uint32_t lane = 0; lane < kLanes; ++lane)
      d[lane] = (mask >> lane & 1) != 0 ? tid[lane] : d[lane];
    return ip + 1;
  }
  const bool varies = special == Special::kLaneId ||
                      (special >= Special::kLanemaskEq && special <= Special::kLanemaskGt);
  const T uniform = varies ? T(0) : T(ValueOf(special, w, 0));
  for (uint32_t m = mask; m != 0; m &= m - 1) {
    const uint32_t lane = __builtin_ctz(m);
    d[lane] = varies ? static_cast<T>(static_cast<uint32_t>(ValueOf(special, w, lane))) : uniform;
  }
  return ip + 1;
}

void Broadcast(Warp* w, uint32_t offset, uint64_t value, uint32_t register_bytes) {
  const uint32_t mask = w->mask;
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    if ((mask >> lane & 1) == 0) continue;
    std::memcpy(w->regs + offset + lane * register_bytes, &value, register_bytes);
  }
}

}  // namespace

const Inst* ReadSpecial32(const Inst* ip, Warp* w) { return ReadSpecial<uint32_t>(ip, w); }
const Inst* ReadSpecial64(const Inst* ip, Warp* w) { return ReadSpecial<uint64_t>(ip, w); }

const Inst* LoadParam(const Inst* ip, Warp* w) {
  MemoryShape shape;
  std::memcpy(&shape, &ip->aux, sizeof shape);
  const std::span<const std::byte> parameters = w->block->state->launch->parameters;
  const uint32_t registers[4] = {ip->d, ip->b, ip->c, ip->e};
  uint64_t offset = ip->imm;
  for (uint32_t k = 0; k < shape.vector; ++k, offset += shape.element_bytes) {
    if (offset + shape.element_bytes > parameters.size()) {
      return RaiseFault(ip, w, -1, CUDA_ERROR_ILLEGAL_ADDRESS,
                        "load past the end of the parameters", offset);
    }
    uint64_t value = 0;
    std::memcpy(&value, parameters.data() + offset, shape.element_bytes);
    if (shape.is_signed) {
      const uint32_t shift = 64 - 8 * shape.element_bytes;
      value = static_cast<uint64_t>(static_cast<int64_t>(value << shift) >> shift);
    }
    if (shape.register_bytes == 8)
      Broadcast(w, registers[k], value, 8);
    else if (shape.register_bytes == 4)
      Broadcast(w, registers[k], value, 4);
    else
      Broadcast(w, registers[k], value, 2);
  }
  return ip + 1;
}

const Inst* LocalAddress(const Inst* ip, Warp* w) {
  const uint64_t address = w->frame->local_base + ip->imm;
  uint64_t* d = Reg<uint64_t>(w, ip->d);
  for (uint32_t m = w->mask; m != 0; m &= m - 1) d[__builtin_ctz(m)] = address;
  return ip + 1;
}

const Inst* IsInWindow(const Inst* ip, Warp* w) {
  const uint64_t* a = Reg<uint64_t>(w, ip->a);
  uint32_t bits = 0;
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    const uint64_t address = a[lane];
    const bool shared = address - ptx::kSharedWindow < ptx::kWindowBytes;
    const bool local = address - ptx::kLocalWindow < ptx::kWindowBytes;
    const bool param = address - ptx::kParamWindow < ptx::kWindowBytes;
    bool in = false;
    switch (static_cast<ptx::Space>(ip->imm)) {
      case ptx::Space::kShared:
        in = shared;
        break;
      case ptx::Space::kLocal:
        in = local;
        break;
      case ptx::Space::kParam:
        in = param;
        break;
      case ptx::Space::kGlobal:
        in = !shared && !local && !param && address != 0;
        break;
      default:
        break;
    }
    bits |= in ? 1u << lane : 0;
  }
  uint32_t& d = *Reg<uint32_t>(w, ip->d);
  d = (d & ~w->mask) | (bits & w->mask);
  return ip + 1;
}

// aux: element bits | scalar bytes << 8 | count << 16. Element registers are at least 16 bits wide;
// imm holds their bytes, four bits each.
const Inst* Pack(const Inst* ip, Warp* w) {
  const uint32_t bits = ip->aux & 255, bytes = ip->aux >> 8 & 255, count = ip->aux >> 16;
  const uint32_t registers[4] = {ip->a, ip->b, ip->c, ip->e};
  const uint64_t keep = bits == 64 ? ~0ull : (1ull << bits) - 1;
  for (uint32_t m = w->mask; m != 0; m &= m - 1) {
    const uint32_t lane = __builtin_ctz(m);
    uint64_t words[2] = {};
    for (uint32_t k = 0; k < count; ++k) {
      const uint32_t width = ip->imm >> (4 * k) & 15;
      uint64_t value = 0;
      std::memcpy(&value, w->regs + registers[k] + lane * width, width);
      words[k * bits / 64] |= (value & keep) << (k * bits % 64);
    }
    std::memcpy(w->regs + ip->d + lane * bytes, words, bytes);
  }
  return ip + 1;
}

const Inst* Unpack(const Inst* ip, Warp* w) {
  const uint32_t bits = ip->aux & 255, bytes = ip->aux >> 8 & 255, count = ip->aux >> 16;
  const uint32_t registers[4] = {ip->d, ip->b, ip->c, ip->e};
  const uint64_t keep = bits == 64 ? ~0ull : (1ull << bits) - 1;
  for (uint32_t m = w->mask; m != 0; m &= m - 1) {
    const uint32_t lane = __builtin_ctz(m);
    uint64_t words[2] = {};
    std::memcpy(words, w->regs + ip->a + lane * bytes, bytes);
    for (uint32_t k = 0; k < count; ++k) {
      const uint32_t width = ip->imm >> (4 * k) & 15;
      const uint64_t value = words[k * bits / 64] >> (k * bits % 64) & keep;
      std::memcpy(w->regs + registers[k] + lane * width, &value, width);
    }
  }
  return ip + 1;
}

}  // namespace softgpu::exec
