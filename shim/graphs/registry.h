// The program's values for objects that live in the client alone: (tag | number), never used twice
// and never a pointer, so that a stale value names nothing. The tags are no ipc::HandleKind.
// Thread safety: all methods.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>

namespace shim::graphs {

template <class T>
class Registry {
 public:
  explicit Registry(uint8_t tag) : tag_(uint64_t{tag} << 56) {}

  // Sets object->value.
  void Add(const std::shared_ptr<T>& object) {
    const std::lock_guard<std::mutex> lock(mutex_);
    object->value = tag_ | ++last_;
    objects_.emplace(object->value, object);
  }
  // Null when the value names nothing.
  std::shared_ptr<T> Find(const void* program) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = objects_.find(reinterpret_cast<uint64_t>(program));
    return found == objects_.end() ? nullptr : found->second;
  }
  // Null when there was none.
  std::shared_ptr<T> Remove(uint64_t value) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = objects_.find(value);
    if (found == objects_.end()) return nullptr;
    const std::shared_ptr<T> object = found->second;
    objects_.erase(found);
    return object;
  }

 private:
  const uint64_t tag_;
  mutable std::mutex mutex_;
  std::unordered_map<uint64_t, std::shared_ptr<T>> objects_;
  uint64_t last_ = 0;
};

}  // namespace shim::graphs
