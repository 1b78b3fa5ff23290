// Physical memory of cuMemCreate: a sealed memfd, so that other processes can map the same bytes.
//
// The file's name says which device it belongs to, its seals say that it can't shrink under a
// mapping; an import checks both and refuses any other descriptor. Thread safety: immutable after
// creation.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <memory>

#include "softgpu/driver/charge.h"

namespace softgpu {

class Extent {
 public:
  static constexpr uint64_t kGranularity = uint64_t{2} << 20;

  // Null when the system has no descriptor or no memory for it. `device` < 0: host memory.
  static std::shared_ptr<Extent> Create(uint64_t bytes, const CUmemAllocationProp& properties,
                                        Charge charge);
  // Takes a descriptor of any process; the caller keeps its own. Null when it isn't one of ours.
  static std::shared_ptr<Extent> ImportUntrusted(int descriptor);

  ~Extent();
  Extent(const Extent&) = delete;
  Extent& operator=(const Extent&) = delete;

  int descriptor() const { return descriptor_; }
  uint64_t bytes() const { return bytes_; }
  const CUmemAllocationProp& properties() const { return properties_; }
  uint64_t id() const { return id_; }

 private:
  Extent(int descriptor, uint64_t bytes, const CUmemAllocationProp& properties, Charge charge);

  const int descriptor_;
  const uint64_t bytes_;
  const CUmemAllocationProp properties_;
  const uint64_t id_;
  Charge charge_;
};

}  // namespace softgpu
