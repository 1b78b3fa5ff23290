// Module images by content, shared by all sessions of the worker; loaded modules are each session's
// own, because module globals are state.
//
// An image arrives in pieces from an untrusted client and is kept only when its hash is the one
// announced. The cache is bounded: the least recently used image goes first (a client sends it
// again when it is asked for). Thread safety: all methods from any session thread.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <span>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
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
  absl::Mutex mutex_;
  absl::flat_hash_map<ModuleHash, Entry, ModuleHashHash> entries_ ABSL_GUARDED_BY(mutex_);
  std::list<ModuleHash> recent_ ABSL_GUARDED_BY(mutex_);  // front: used last
  uint64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

// The worker's one cache.
ModuleCache& SharedModuleCache();

// Puts the pieces of one image together. One per session: a client sends one image at a time.
class ModuleAssembly {
 public:
  // Appends a piece. False: out of order, too large, or another image was begun before its end.
  bool AppendUntrusted(const ModuleHash& hash, uint64_t total, uint64_t offset,
                       std::span<const std::byte> piece);
  bool complete() const { return total_ != 0 && bytes_.size() == total_; }
  bool begun() const { return total_ != 0; }
  const ModuleHash& hash() const { return hash_; }
  // The image, zero-terminated beyond its end. Resets.
  std::vector<std::byte> Release();

 private:
  ModuleHash hash_;
  uint64_t total_ = 0;
  std::vector<std::byte> bytes_;
};

}  // namespace worker
