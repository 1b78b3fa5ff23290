#include "softgpu/exec/memory_access.h"

#include <cstring>

#include "ipc/calls/limits.h"
#include "softgpu/exec/handlers.h"

namespace softgpu::exec {
namespace {

using ptx::Space;

MemoryShape ShapeOf(const Inst* ip) {
  MemoryShape shape;
  std::memcpy(&shape, &ip->aux, sizeof shape);
  return shape;
}

std::string Describe(bool is_store, uint32_t bytes, uint64_t address, const char* why) {
  char text[128];
  std::snprintf(text, sizeof text, "%s of %u bytes %s 0x%llx%s", is_store ? "store" : "load", bytes,
                is_store ? "to" : "from", static_cast<unsigned long long>(address), why);
  return text;
}

uint64_t AddressOf(const Inst* ip, const Warp* w, const MemoryShape& shape, uint32_t lane) {
  const uint64_t base = shape.narrow_address
                            ? reinterpret_cast<const uint32_t*>(w->regs + ip->a)[lane]
                            : reinterpret_cast<const uint64_t*>(w->regs + ip->a)[lane];
  return base + ip->imm;
}

bool Inside(uint64_t offset, uint64_t bytes, uint64_t size) {
  return offset < size && size - offset >= bytes;
}

// Gives generic addresses their space; `address` becomes an offset in it.
Space Classify(uint64_t* address) {
  for (const auto& [window, space] :
       {std::pair{ptx::kSharedWindow, Space::kShared}, std::pair{ptx::kLocalWindow, Space::kLocal},
        std::pair{ptx::kParamWindow, Space::kParam}}) {
    if (*address - window < ptx::kWindowBytes) {
      *address -= window;
      return space;
    }
  }
  return Space::kGlobal;
}

}  // namespace

std::byte* Resolve(Warp* w, const Inst* ip, uint32_t lane, uint64_t address, uint32_t bytes,
                   uint8_t space_number, bool is_store) {
  w->current = ip;
  w->resolved = {ip, address, bytes, static_cast<uint8_t>(lane), is_store};
  const auto fail = [&](CUresult code, const char* why) -> std::byte* {
    RaiseFault(ip, w, static_cast<int>(lane), code, Describe(is_store, bytes, address, why),
               address);
    return nullptr;
  };
  if ((address & (bytes - 1)) != 0) {
    return fail(CUDA_ERROR_MISALIGNED_ADDRESS, ", which is misaligned");
  }
  uint64_t offset = address;
  Space space = static_cast<Space>(space_number);
  if (space == Space::kGeneric || space == Space::kParam) {
    // A kernel's parameter is an offset from .param, or what cvta made of it.
    const Space found = Classify(&offset);
    if (space == Space::kGeneric || found != Space::kGlobal) space = found;
  }
  const Launch& launch = *w->block->state->launch;
  switch (space) {
    case Space::kShared:
      if (Inside(offset, bytes, w->shared_bytes)) return w->shared + offset;
      return fail(CUDA_ERROR_ILLEGAL_ADDRESS, ", past the end of shared memory");
    case Space::kLocal:
      if (Inside(offset, bytes, w->local_stride)) {
        return w->local + size_t{lane} * w->local_stride + offset;
      }
      return fail(CUDA_ERROR_ILLEGAL_ADDRESS, ", past the end of local memory");
    case Space::kParam:
      if (!is_store && Inside(offset, bytes, launch.parameters.size())) {
        return const_cast<std::byte*>(launch.parameters.data()) + offset;
      }
      return fail(CUDA_ERROR_ILLEGAL_ADDRESS, ", past the end of the parameters");
    default:
      break;
  }
  if (launch.cooperative && Inside(address - ptx::kGridWindow, bytes, ptx::kGridBytes)) {
    return w->block->state->grid_memory + (address - ptx::kGridWindow);
  }
  const uint64_t window = ipc::limits::kWindowEnd - ipc::limits::kWindowBase;
  const bool known =
      Inside(address - ipc::limits::kWindowBase, bytes, window) ||
      (launch.memory != nullptr && launch.memory->ContainsOutsideWindow(address, bytes));
  if (!known) return fail(CUDA_ERROR_ILLEGAL_ADDRESS, ", which is not mapped");
  return reinterpret_cast<std::byte*>(address);
}

const Inst* AccessSlowly(const Inst* ip, Warp* w, uint32_t lanes) {
  const MemoryShape shape = ShapeOf(ip);
  const uint32_t registers[4] = {ip->d, ip->b, ip->c, ip->e};
  const uint32_t bytes = uint32_t{shape.element_bytes} * shape.vector;
  for (uint32_t m = lanes; m != 0; m &= m - 1) {
    const uint32_t lane = __builtin_ctz(m);
    std::byte* at =
        Resolve(w, ip, lane, AddressOf(ip, w, shape, lane), bytes, shape.space, shape.is_store);
    if (at == nullptr) return nullptr;
    for (uint32_t k = 0; k < shape.vector; ++k, at += shape.element_bytes) {
      std::byte* reg = w->regs + registers[k] + lane * shape.register_bytes;
      if (shape.is_store) {
        std::memcpy(at, reg, shape.element_bytes);
        continue;
      }
      uint64_t value[2] = {};  // b128 has two words
      std::memcpy(value, at, shape.element_bytes);
      if (shape.is_signed) {
        const uint32_t shift = 64 - 8 * shape.element_bytes;
        value[0] = static_cast<uint64_t>(static_cast<int64_t>(value[0] << shift) >> shift);
      }
      std::memcpy(reg, value, shape.register_bytes);
    }
  }
  return ip + 1;
}

const Inst* CheckAlignment(const Inst* ip, Warp* w) {
  const MemoryShape shape = ShapeOf(ip);
  for (uint32_t m = w->mask; m != 0; m &= m - 1) {
    const uint32_t lane = __builtin_ctz(m);
    const uint64_t address = AddressOf(ip, w, shape, lane);
    if ((address & (ip->c - 1)) == 0) continue;
    return RaiseFault(ip, w, static_cast<int>(lane), CUDA_ERROR_MISALIGNED_ADDRESS,
                      Describe(shape.is_store, ip->c, address, ", which is misaligned"), address);
  }
  return ip + 1;
}

const Inst* FillZero(const Inst* ip, Warp* w) {
  const MemoryShape shape = ShapeOf(ip);
  for (uint32_t m = w->mask; m != 0; m &= m - 1) {
    const uint32_t lane = __builtin_ctz(m);
    const uint64_t address = AddressOf(ip, w, shape, lane);
    const uint64_t bytes = reinterpret_cast<const uint64_t*>(w->regs + ip->b)[lane];
    for (uint64_t at = 0; at < bytes; at += 8) {
      std::byte* to = Resolve(w, ip, lane, address + at, 8, shape.space, true);
      if (to == nullptr) return nullptr;
      std::memset(to, 0, std::min<uint64_t>(bytes - at, 8));
    }
  }
  return ip + 1;
}

const Inst* AccessAny(const Inst* ip, Warp* w) { return AccessSlowly(ip, w, w->mask); }

// aux: bytes in the low half; bit 16, 17: shared, global address has 32 bits; bit 18: c is there.
const Inst* CopyAsync(const Inst* ip, Warp* w) {
  const uint32_t bytes = ip->aux & 0xffff;
  const auto address = [&](uint32_t reg, bool narrow, uint32_t lane) -> uint64_t {
    return narrow ? reinterpret_cast<const uint32_t*>(w->regs + reg)[lane]
                  : reinterpret_cast<const uint64_t*>(w->regs + reg)[lane];
  };
  for (uint32_t m = w->mask; m != 0; m &= m - 1) {
    const uint32_t lane = __builtin_ctz(m);
    const uint64_t to =
        address(ip->a, (ip->aux >> 16 & 1) != 0, lane) + static_cast<int32_t>(ip->imm & 0xffffffff);
    const uint64_t from =
        address(ip->b, (ip->aux >> 17 & 1) != 0, lane) + static_cast<int32_t>(ip->imm >> 32);
    uint32_t take = bytes;
    if ((ip->aux >> 18 & 1) != 0) {
      take = std::min(bytes, reinterpret_cast<const uint32_t*>(w->regs + ip->c)[lane]);
    }
    std::byte* target = Resolve(w, ip, lane, to, bytes, static_cast<uint8_t>(Space::kShared), true);
    if (target == nullptr) return nullptr;
    std::byte copy[16] = {};
    if (take != 0) {
      const std::byte* source =
          Resolve(w, ip, lane, from, bytes, static_cast<uint8_t>(Space::kGlobal), false);
      if (source == nullptr) return nullptr;
      std::memcpy(copy, source, take);
    }
    std::memcpy(target, copy, bytes);
  }
  return ip + 1;
}

}  // namespace softgpu::exec
