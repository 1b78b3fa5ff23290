#include "shim/rebuild/images.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <map>
#include <mutex>
#include <utility>

namespace shim {
namespace {

using Key = std::pair<uint64_t, uint64_t>;

struct Store {
  std::mutex mutex;
  std::map<Key, std::weak_ptr<const ModuleBytes>> images;
};

Store& TheStore() {
  static Store* const store = new Store;
  return *store;
}

Key KeyOf(const ipc::ModuleHash& hash) { return {hash.word[0], hash.word[1]}; }

}  // namespace

ipc::ModuleHash Images::HashOf(std::span<const std::byte> bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return {{hash.low64, hash.high64}};
}

std::shared_ptr<const ModuleBytes> Images::Keep(const ipc::ModuleHash& hash,
                                                std::span<const std::byte> bytes) {
  Store& store = TheStore();
  const std::lock_guard<std::mutex> lock(store.mutex);
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
  const std::lock_guard<std::mutex> lock(store.mutex);
  const std::map<Key, std::weak_ptr<const ModuleBytes>>::const_iterator found =
      store.images.find(KeyOf(hash));
  return found == store.images.end() ? nullptr : found->second.lock();
}

}  // namespace shim
