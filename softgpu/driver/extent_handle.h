// A CUmemGenericAllocationHandle: an extent and how often it was retained.
#pragma once

#include <cuda.h>

#include <memory>
#include <utility>

#include "base/mutex.h"
#include "softgpu/driver/extent.h"

namespace softgpu {

class ExtentHandle {
 public:
  explicit ExtentHandle(std::shared_ptr<Extent> extent) : extent_(std::move(extent)) {}

  const std::shared_ptr<Extent>& extent() const { return extent_; }
  void Retain() {
    base::MutexLock lock(&mutex_);
    ++references_;
  }
  bool Release() {  // true: that was the last one
    base::MutexLock lock(&mutex_);
    return --references_ == 0;
  }

 private:
  const std::shared_ptr<Extent> extent_;
  base::Mutex mutex_;
  int references_ GUARDED_BY(mutex_) = 1;
};

}  // namespace softgpu
