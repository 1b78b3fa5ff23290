#include "shim/registered_memory.h"

#include <pthread.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "ipc/calls/limits.h"
#include "shim/own_mappings.h"
#include "shim/pinned_ranges.h"
#include "shim/stderr_once.h"

namespace shim {
namespace {

constexpr uint64_t kPieceBytes = 2u << 20;

std::atomic<bool> said_fixed;

void* At(uint64_t address) { return reinterpret_cast<void*>(address); }

// Calls `exchange(offset, bytes)` for each piece. A page at the ends may have other things of the
// program in it, so it is exchanged by itself, as fast as can be.
template <class Function>
bool ForEachPiece(uint64_t bytes, Function exchange) {
  for (uint64_t done = 0; done < bytes;) {
    const uint64_t left = bytes - done;
    const bool edge = done == 0 || left <= kPinnedPage;
    const uint64_t piece = edge ? kPinnedPage : std::min(kPieceBytes, left - kPinnedPage);
    if (!exchange(done, piece)) return false;
    done += piece;
  }
  return true;
}

void* PrivatePages(uint64_t bytes) {
  return mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE,
              -1, 0);
}

}  // namespace

RegisteredMemory& RegisteredMemory::Process() {
  static RegisteredMemory* const memory = new RegisteredMemory;
  return *memory;
}

RegisteredMemory::RegisteredMemory() {
  pthread_atfork(&BeforeFork, &AfterForkInParent, &AfterForkInChild);
}

// An old size of 0 asks for the same shared pages at a second place, so no descriptor is needed:
// the program may have closed it. What was in that place goes in the same moment.
bool RegisteredMemory::Exchange(const Range& range) {
  return ForEachPiece(range.page_bytes, [&range](uint64_t offset, uint64_t bytes) {
    void* const program = At(range.first_page + offset);
    void* const window = At(range.window + offset);
    std::memcpy(window, program, bytes);
    return mremap(window, 0, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, program) != MAP_FAILED;
  });
}

std::optional<std::vector<RegisteredMemory::Range>> RegisteredMemory::StillShared(
    const Range& range) {
  // Both ends of the exchange map the same part of the same file, as long as the program has left
  // the memory alone. Pages that it has mapped there since then are its own.
  const std::vector<Mapping> windows = MappingsWithin(range.window, range.window + 1);
  if (windows.size() != 1) return std::nullopt;
  std::vector<Range> parts;
  const uint64_t end = range.first_page + range.page_bytes;
  for (const Mapping& mapping : MappingsWithin(range.first_page, end)) {
    const uint64_t begin = std::max(mapping.begin, range.first_page);
    const uint64_t offset = begin - range.first_page;
    const bool ours = mapping.kind == Mapping::Kind::kShared && mapping.inode == windows[0].inode &&
                      mapping.offset + (begin - mapping.begin) ==
                          windows[0].offset + (range.window + offset - windows[0].begin);
    if (ours)
      parts.push_back({0, begin, std::min(mapping.end, end) - begin, range.window + offset});
  }
  return parts;
}

bool RegisteredMemory::PutBack(const Range& range) {
  const std::optional<std::vector<Range>> parts = StillShared(range);
  if (!parts.has_value()) return false;
  for (const Range& part : *parts) {
    void* const fresh = PrivatePages(part.page_bytes);
    if (fresh == MAP_FAILED) return false;
    // A piece is moved over the shared pages in one step: other threads see either the ones or the
    // others, never a hole.
    const bool put = ForEachPiece(part.page_bytes, [&](uint64_t offset, uint64_t bytes) {
      void* const copy = static_cast<std::byte*>(fresh) + offset;
      std::memcpy(copy, At(part.window + offset), bytes);
      return mremap(copy, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED,
                    At(part.first_page + offset)) != MAP_FAILED;
    });
    if (!put) return false;
  }
  return true;
}

CUresult RegisteredMemory::Share(uint32_t wire, uint64_t address, size_t bytes, uint64_t* device,
                                 bool* made) {
  const uint64_t first = address & ~(kPinnedPage - 1);
  if (bytes > ipc::limits::kPinnedWindowBytes || address + bytes < address)
    return CUDA_ERROR_INVALID_VALUE;
  Range range;
  range.bytes = bytes;
  range.first_page = first;
  range.page_bytes = WholePages(address - first + bytes);
  // Another thread's registration of the same pages waits here, and finds them shared.
  const base::MutexLock making(&making_);
  *made = false;
  if (const std::optional<uint64_t> known = DeviceOf(address, bytes); known.has_value()) {
    *device = *known;
    return CUDA_SUCCESS;
  }
  const uint64_t end = first + range.page_bytes;
  const std::optional<std::string_view> fixed =
      WhyFixed(MappingsWithin(first, end), first, end,
               reinterpret_cast<uint64_t>(__builtin_frame_address(0)));
  if (fixed.has_value()) {
    StderrOnce(said_fixed,
               {"cuMemHostRegister with a device mapping is not possible here: the memory ", *fixed,
                "; allocate it with cuMemHostAlloc"});
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  if (const CUresult result = MapPinned(wire, range.page_bytes, 0, &range.window);
      result != CUDA_SUCCESS) {
    return result;
  }
  bool exchanged = false;
  {
    const base::MutexLock lock(&mutex_);
    exchanged = Exchange(range);
    if (exchanged) ranges_[address] = range;
    count_.store(ranges_.size(), std::memory_order_relaxed);
  }
  // Some pages may be exchanged already. They go back before the window's are given up.
  if (!exchanged) {
    if (PutBack(range)) (void)UnmapPinned(wire, {{range.window, range.page_bytes}});
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  *device = range.window + (address - first);
  *made = true;
  return CUDA_SUCCESS;
}

CUresult RegisteredMemory::Unshare(uint32_t wire, uint64_t address) {
  const base::MutexLock making(&making_);
  Range range;
  {
    const base::MutexLock lock(&mutex_);
    const std::map<uint64_t, Range>::iterator found = ranges_.find(address);
    if (found == ranges_.end()) return CUDA_SUCCESS;
    range = found->second;
    if (!PutBack(range)) return CUDA_ERROR_OUT_OF_MEMORY;
    ranges_.erase(found);
    count_.store(ranges_.size(), std::memory_order_relaxed);
  }
  return UnmapPinned(wire, {{range.window, range.page_bytes}});
}

std::optional<uint64_t> RegisteredMemory::DeviceOf(uint64_t address, size_t bytes) const {
  const base::MutexLock lock(&mutex_);
  std::map<uint64_t, Range>::const_iterator it = ranges_.upper_bound(address);
  if (it == ranges_.begin()) return std::nullopt;
  --it;
  const uint64_t offset = address - it->first;
  if (offset >= it->second.bytes || bytes > it->second.bytes - offset) return std::nullopt;
  return it->second.window + (address - it->second.first_page);
}

std::optional<uint64_t> RegisteredMemory::HostOf(uint64_t device) const {
  const base::MutexLock lock(&mutex_);
  for (const std::pair<const uint64_t, Range>& entry : ranges_) {
    const uint64_t offset = device - entry.second.window;
    if (offset < entry.second.page_bytes) return entry.second.first_page + offset;
  }
  return std::nullopt;
}

void RegisteredMemory::BeforeFork() {
  RegisteredMemory& memory = Process();
  memory.mutex_.Lock();
  for (const std::pair<const uint64_t, Range>& entry : memory.ranges_) {
    for (const Range& part : StillShared(entry.second).value_or(std::vector<Range>())) {
      void* const pages = PrivatePages(part.page_bytes);
      // Without memory for a copy the child goes on with its parent's pages.
      if (pages == MAP_FAILED) continue;
      std::memcpy(pages, At(part.window), part.page_bytes);
      memory.copies_.push_back({pages, part.first_page, part.page_bytes});
    }
  }
}

void RegisteredMemory::AfterForkInParent() {
  RegisteredMemory& memory = Process();
  for (const Copy& copy : memory.copies_) munmap(copy.pages, copy.page_bytes);
  memory.copies_.clear();
  memory.mutex_.Unlock();
}

void RegisteredMemory::AfterForkInChild() {
  RegisteredMemory& memory = Process();
  for (const Copy& copy : memory.copies_) {
    mremap(copy.pages, copy.page_bytes, copy.page_bytes, MREMAP_MAYMOVE | MREMAP_FIXED,
           At(copy.first_page));
  }
  memory.copies_.clear();
  memory.mutex_.Unlock();
}

}  // namespace shim
