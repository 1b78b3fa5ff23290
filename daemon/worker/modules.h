// Module images by content, shared by all sessions of the worker; loaded modules are each session's
// own, because module globals are state.
//
// An image arrives in pieces from an untrusted client and is kept only when its hash is the one
// announced. The cache is bounded: the least recently used image goes first (a client sends it
// again when it is asked for). Thread safety: all methods from any session thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <list>
#include <memory>
#include <span>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/mutex.h"
#include "ipc/calls/laneway_calls.h"

namespace worker {

using ipc::ModuleHash;
using ModuleImage = std::shared_ptr<const std::vector<std::byte>>;

struct ModuleHashHash {
  size_t operator()(const ModuleHash& hash) const { return hash.word[0]; }
};

// Images are kept with a zero beyond their end: PTX text is a C string to the driver.
class ModuleCache {
 public:
  explicit ModuleCache(uint64_t bytes_max) : bytes_max_(bytes_max) {}
  // Null when the image is not there.
  ModuleImage Find(const ModuleHash& hash);
  // False when the bytes do not have that hash.
  bool Add(const ModuleHash& hash, std::vector<std::byte> bytes);
  // The hash of an image that was made here.
  ModuleHash AddMade(std::span<const std::byte> image);

 private:
  struct Entry {
    ModuleImage image;
    std::list<ModuleHash>::iterator used;
  };
  void Insert(const ModuleHash& hash, std::vector<std::byte> bytes);

  const uint64_t bytes_max_;
  base::Mutex mutex_;
  absl::flat_hash_map<ModuleHash, Entry, ModuleHashHash> entries_ GUARDED_BY(mutex_);
  std::list<ModuleHash> recent_ GUARDED_BY(mutex_);  // front: used last
  uint64_t bytes_ GUARDED_BY(mutex_) = 0;
};

// The worker's one cache.
ModuleCache& SharedModuleCache();

// What unfinished images may take of the worker's memory beyond limits::kModuleBytesOwn each.
// Thread safety: any thread.
class AssemblyBudget {
 public:
  explicit AssemblyBudget(uint64_t bytes_max) : bytes_max_(bytes_max) {}
  bool Take(uint64_t bytes);
  void Give(uint64_t bytes) { used_.fetch_sub(bytes); }
  uint64_t used() const { return used_.load(); }

 private:
  const uint64_t bytes_max_;
  std::atomic<uint64_t> used_{0};
};

// The worker's one budget.
AssemblyBudget& SharedAssemblyBudget();

// Puts the pieces of one image together. One per session: a client sends one image at a time.
class ModuleAssembly {
 public:
  explicit ModuleAssembly(AssemblyBudget* budget = &SharedAssemblyBudget()) : budget_(budget) {}
  ~ModuleAssembly() { Drop(); }
  ModuleAssembly(const ModuleAssembly&) = delete;

  // Appends a piece. 200: out of order, too large, or another image was begun before its end. 2:
  // unfinished images take too much already; this one is dropped.
  CUresult AppendUntrusted(const ModuleHash& hash, uint64_t total, uint64_t offset,
                           std::span<const std::byte> piece);
  bool complete() const { return total_ != 0 && bytes_.size() == total_; }
  bool begun() const { return total_ != 0; }
  const ModuleHash& hash() const { return hash_; }
  // The image, zero-terminated beyond its end. Resets.
  std::vector<std::byte> Release();

 private:
  bool Reserve(uint64_t bytes);
  void GiveBack();
  void Drop();

  AssemblyBudget* const budget_;
  ModuleHash hash_;
  uint64_t total_ = 0;
  uint64_t taken_ = 0;  // of the budget
  std::vector<std::byte> bytes_;
};

}  // namespace worker
