// What the detector of iterations is told about a driver call that is work for the device: which
// call, which kernel, which sizes; no addresses and no streams. Thread safety: stateless.
#pragma once

#include "ipc/calls/vendor.h"

#include <cstdint>
#include <type_traits>

#include "ipc/calls.h"
#include "shim/iterations/history.h"

namespace shim::inprocess {

inline uint64_t Mixed(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15;
  return hash ^ hash >> 29;
}

// By the C type of a parameter alone: an address is a CUdeviceptr (unsigned long long) or a
// pointer, a size is neither.
template <class T>
uint64_t ShapeOf(uint64_t hash, T value) {
  if constexpr (std::is_enum_v<T> ||
                (std::is_integral_v<T> && !std::is_same_v<T, unsigned long long>)) {
    return Mixed(hash, static_cast<uint64_t>(value));
  } else {
    return hash;
  }
}
inline uint64_t ShapeOf(uint64_t hash, const CUlaunchConfig* config) {
  if (config == nullptr) return hash;
  hash = Mixed(Mixed(Mixed(hash, config->gridDimX), config->gridDimY), config->gridDimZ);
  hash = Mixed(Mixed(Mixed(hash, config->blockDimX), config->blockDimY), config->blockDimZ);
  return Mixed(hash, config->sharedMemBytes);
}
inline uint64_t ShapeOf(uint64_t hash, const CUDA_MEMCPY2D* copy) {
  return copy == nullptr ? hash : Mixed(Mixed(hash, copy->WidthInBytes), copy->Height);
}
inline uint64_t ShapeOf(uint64_t hash, const CUDA_MEMCPY3D* copy) {
  if (copy == nullptr) return hash;
  return Mixed(Mixed(Mixed(hash, copy->WidthInBytes), copy->Height), copy->Depth);
}

template <class T>
uint64_t IdentityOf(uint64_t hash, T value) {
  if constexpr (std::is_same_v<T, CUfunction> || std::is_same_v<T, CUgraphExec>) {
    return Mixed(hash, reinterpret_cast<uint64_t>(value));
  } else {
    return hash;
  }
}

inline uint32_t Folded(uint64_t hash) { return static_cast<uint32_t>(hash ^ hash >> 32); }

template <class... A>
iterations::Op TokenOf(ipc::Op op, bool computes, A... a) {
  uint64_t identity = static_cast<uint64_t>(op), shape = 1;
  ((identity = IdentityOf(identity, a)), ...);
  ((shape = ShapeOf(shape, a)), ...);
  iterations::Op token;
  token.identity = Folded(Mixed(identity, 0x1a5e));
  token.shape = Folded(Mixed(shape, identity));
  token.computes = computes;
  return token;
}

}  // namespace shim::inprocess
