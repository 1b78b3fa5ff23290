#include "daemon/worker/modules.h"

#include <xxhash.h>

#include "ipc/calls/limits.h"

namespace worker {
namespace {

constexpr uint64_t kCacheBytesMax = 2 * ipc::limits::GiB;

ModuleHash HashOf(std::span<const std::byte> image) {
  const XXH128_hash_t hash = XXH3_128bits(image.data(), image.size());
  return {{hash.low64, hash.high64}};
}

}  // namespace

ModuleCache& SharedModuleCache() {
  static ModuleCache* const cache = new ModuleCache(kCacheBytesMax);
  return *cache;
}

ModuleImage ModuleCache::Find(const ModuleHash& hash) {
  absl::MutexLock lock(&mutex_);
  const auto it = entries_.find(hash);
  if (it == entries_.end()) return nullptr;
  recent_.splice(recent_.begin(), recent_, it->second.used);
  return it->second.image;
}

bool ModuleCache::Add(const ModuleHash& hash, std::vector<std::byte> bytes) {
  if (HashOf(std::span(bytes).first(bytes.size() - 1)) != hash) return false;
  Insert(hash, std::move(bytes));
  return true;
}

ModuleHash ModuleCache::AddMade(std::span<const std::byte> image) {
  const ModuleHash hash = HashOf(image);
  std::vector<std::byte> bytes(image.begin(), image.end());
  bytes.push_back(std::byte{0});
  Insert(hash, std::move(bytes));
  return hash;
}

void ModuleCache::Insert(const ModuleHash& hash, std::vector<std::byte> bytes) {
  absl::MutexLock lock(&mutex_);
  if (entries_.contains(hash)) return;
  recent_.push_front(hash);
  bytes_ += bytes.size();
  entries_[hash] = {std::make_shared<const std::vector<std::byte>>(std::move(bytes)),
                    recent_.begin()};
  while (bytes_ > bytes_max_ && recent_.size() > 1) {
    const auto oldest = entries_.find(recent_.back());
    bytes_ -= oldest->second.image->size();
    entries_.erase(oldest);
    recent_.pop_back();
  }
}

bool ModuleAssembly::AppendUntrusted(const ModuleHash& hash, uint64_t total, uint64_t offset,
                                     std::span<const std::byte> piece) {
  if (offset == 0) {
    if (total == 0 || total > ipc::limits::kModuleBytesMax) return false;
    hash_ = hash;
    total_ = total;
    bytes_.clear();
  }
  if (!(hash == hash_) || total != total_ || offset != bytes_.size() ||
      piece.size() > total_ - offset) {
    return false;
  }
  bytes_.insert(bytes_.end(), piece.begin(), piece.end());
  return true;
}

std::vector<std::byte> ModuleAssembly::Release() {
  bytes_.push_back(std::byte{0});
  total_ = 0;
  return std::move(bytes_);
}

}  // namespace worker
