#include "daemon/worker/modules.h"

#include <utility>

#include "ipc/calls/limits.h"
#include "ipc/module_hash.h"

namespace worker {
namespace {

constexpr uint64_t kCacheBytesMax = 2 * ipc::limits::GiB;

}  // namespace

ModuleCache& SharedModuleCache() {
  static ModuleCache* const cache = new ModuleCache(kCacheBytesMax);
  return *cache;
}

ModuleImage ModuleCache::Find(const ModuleHash& hash) {
  const base::MutexLock lock(&mutex_);
  const auto it = entries_.find(hash);
  if (it == entries_.end()) return nullptr;
  recent_.splice(recent_.begin(), recent_, it->second.used);
  return it->second.image;
}

bool ModuleCache::Add(const ModuleHash& hash, std::vector<std::byte> bytes) {
  if (ipc::HashOfModule(std::span(bytes).first(bytes.size() - 1)) != hash) return false;
  Insert(hash, std::move(bytes));
  return true;
}

ModuleHash ModuleCache::AddMade(std::span<const std::byte> image) {
  const ModuleHash hash = ipc::HashOfModule(image);
  std::vector<std::byte> bytes(image.begin(), image.end());
  bytes.push_back(std::byte{0});
  Insert(hash, std::move(bytes));
  return hash;
}

void ModuleCache::Insert(const ModuleHash& hash, std::vector<std::byte> bytes) {
  const base::MutexLock lock(&mutex_);
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

AssemblyBudget& SharedAssemblyBudget() {
  static AssemblyBudget* const budget = new AssemblyBudget(ipc::limits::kModuleBytesShared);
  return *budget;
}

bool AssemblyBudget::Take(uint64_t bytes) {
  uint64_t used = used_.load();
  do {
    if (bytes > bytes_max_ - used) return false;
  } while (!used_.compare_exchange_weak(used, used + bytes));
  return true;
}

CUresult ModuleAssembly::AppendUntrusted(const ModuleHash& hash, uint64_t total, uint64_t offset,
                                         std::span<const std::byte> piece) {
  if (offset == 0) {
    if (total == 0 || total > ipc::limits::kModuleBytesMax) return CUDA_ERROR_INVALID_IMAGE;
    Drop();
    hash_ = hash;
    total_ = total;
  }
  if (!(hash == hash_) || total != total_ || offset != bytes_.size() ||
      piece.size() > total_ - offset) {
    return CUDA_ERROR_INVALID_IMAGE;
  }
  if (!Reserve(bytes_.size() + piece.size())) {
    Drop();
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  bytes_.insert(bytes_.end(), piece.begin(), piece.end());
  return CUDA_SUCCESS;
}

// Memory is taken as it is filled: what a client announces costs nothing.
bool ModuleAssembly::Reserve(uint64_t bytes) {
  if (bytes <= ipc::limits::kModuleBytesOwn + taken_) return true;
  const uint64_t more = bytes - ipc::limits::kModuleBytesOwn - taken_;
  if (!budget_->Take(more)) return false;
  taken_ += more;
  return true;
}

void ModuleAssembly::GiveBack() { budget_->Give(std::exchange(taken_, 0)); }

void ModuleAssembly::Drop() {
  GiveBack();
  total_ = 0;
  std::vector<std::byte>().swap(bytes_);
}

std::vector<std::byte> ModuleAssembly::Release() {
  GiveBack();
  bytes_.push_back(std::byte{0});
  total_ = 0;
  return std::exchange(bytes_, {});
}

}  // namespace worker
