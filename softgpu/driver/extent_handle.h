// A CUmemGenericAllocationHandle: an extent and how often it was retained.
#pragma once

#include <cuda.h>

#include <memory>
#include <mutex>
#include <utility>

#include "softgpu/driver/extent.h"

namespace softgpu {

class ExtentHandle {
 public:
  explicit ExtentHandle(std::shared_ptr<Extent> extent) : extent_(std::move(extent)) {}

  const std::shared_ptr<Extent>& extent() const { return extent_; }
  void Retain() {
    std::lock_guard<std::mutex> lock(mutex_);
    ++references_;
  }
  bool Release() {  // true: that was the last one
    std::lock_guard<std::mutex> lock(mutex_);
    return --references_ == 0;
  }

 private:
  const std::shared_ptr<Extent> extent_;
  std::mutex mutex_;
  int references_ = 1;
};

}  // namespace softgpu
