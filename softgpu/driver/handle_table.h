// The live objects behind one kind of handle. A handle is the object's address; looking it up is
// the check that it is valid, and the result keeps the object alive for the length of a call.
//
// Thread safety: every function may be called from any thread.
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "base/find.h"
#include "base/mutex.h"

namespace softgpu {

template <class T>
class HandleTable {
 public:
  void* Add(std::shared_ptr<T> object) {
    void* const handle = object.get();
    base::WriterLock lock(&mutex_);
    objects_[handle] = std::move(object);
    return handle;
  }

  std::shared_ptr<T> Find(const void* handle) const {
    base::ReaderLock lock(&mutex_);
    return base::FindOr(objects_, handle, nullptr);
  }

  // Returns the object, so that it is destroyed outside the lock.
  std::shared_ptr<T> Remove(const void* handle) {
    base::WriterLock lock(&mutex_);
    const auto it = objects_.find(handle);
    if (it == objects_.end()) return nullptr;
    std::shared_ptr<T> object = std::move(it->second);
    objects_.erase(it);
    return object;
  }

  std::vector<std::shared_ptr<T>> All() const {
    base::ReaderLock lock(&mutex_);
    std::vector<std::shared_ptr<T>> all;
    for (const auto& [handle, object] : objects_) all.push_back(object);
    return all;
  }

 private:
  mutable base::SharedMutex mutex_;
  std::unordered_map<const void*, std::shared_ptr<T>> objects_ GUARDED_BY(mutex_);
};

}  // namespace softgpu
