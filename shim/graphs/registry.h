// The program's values for objects that live in the client alone: (tag | number), never used twice
// and never a pointer, so that a stale value names nothing. The tags are no ipc::HandleKind.
// Thread safety: all methods.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>

#include "base/find.h"
#include "base/mutex.h"

namespace shim::graphs {

template <class T>
class Registry {
 public:
  explicit Registry(uint8_t tag) : tag_(uint64_t{tag} << 56) {}

  // Returns its value.
  uint64_t Add(const std::shared_ptr<T>& object) EXCLUDES(mutex_) {
    base::MutexLock lock(&mutex_);
    const uint64_t value = tag_ | ++last_;
    objects_.emplace(value, object);
    return value;
  }
  // Null when the value names nothing.
  std::shared_ptr<T> Find(const void* program) const EXCLUDES(mutex_) {
    base::MutexLock lock(&mutex_);
    return base::FindOr(objects_, reinterpret_cast<uint64_t>(program), nullptr);
  }
  // The object, for its end to come without the lock. Null when there was none.
  std::shared_ptr<T> Remove(uint64_t value) EXCLUDES(mutex_) {
    base::MutexLock lock(&mutex_);
    const auto found = objects_.find(value);
    if (found == objects_.end()) return nullptr;
    const std::shared_ptr<T> object = found->second;
    objects_.erase(found);
    return object;
  }

 private:
  const uint64_t tag_;
  mutable base::Mutex mutex_;
  std::unordered_map<uint64_t, std::shared_ptr<T>> objects_ GUARDED_BY(mutex_);
  uint64_t last_ GUARDED_BY(mutex_) = 0;
};

}  // namespace shim::graphs
