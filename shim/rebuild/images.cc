#include "shim/rebuild/images.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <utility>

#include "base/mutex.h"
#include "shim/lock_order.h"

namespace shim {
namespace {

using Key = std::array<uint64_t, 4>;

struct Store {
  base::Mutex mutex ACQUIRED_AFTER(lock_order::kKeeping);
  std::map<Key, std::weak_ptr<const ModuleBytes>> images GUARDED_BY(mutex);
};

Store& TheStore() {
  static Store* const store = new Store;
  return *store;
}

Key KeyOf(const ipc::ModuleHash& hash) {
  Key key;
  std::copy(std::begin(hash.word), std::end(hash.word), key.begin());
  return key;
}

}  // namespace

std::shared_ptr<const ModuleBytes> Images::Keep(const ipc::ModuleHash& hash,
                                                std::span<const std::byte> bytes) {
  Store& store = TheStore();
  const base::MutexLock lock(&store.mutex);
  std::weak_ptr<const ModuleBytes>& place = store.images[KeyOf(hash)];
  std::shared_ptr<const ModuleBytes> kept = place.lock();
  if (kept == nullptr) {
    std::erase_if(store.images, [&place](const auto& entry) {
      return &entry.second != &place && entry.second.expired();
    });
    kept = std::make_shared<const ModuleBytes>(bytes.begin(), bytes.end());
    place = kept;
  }
  return kept;
}

std::shared_ptr<const ModuleBytes> Images::Find(const ipc::ModuleHash& hash) {
  Store& store = TheStore();
  const base::MutexLock lock(&store.mutex);
  const std::map<Key, std::weak_ptr<const ModuleBytes>>::const_iterator found =
      store.images.find(KeyOf(hash));
  return found == store.images.end() ? nullptr : found->second.lock();
}

}  // namespace shim
