// A session and a caller without a device: names map to made-up pointers both ways, addresses
// between kArena and kArena + kArenaBytes are the session's.
#pragma once

#include <array>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "ipc/caller.h"
#include "ipc/door.h"
#include "ipc/message.h"

namespace ipc {

inline constexpr uint64_t kArena = 0x2000'0000'0000;
inline constexpr uint64_t kArenaBytes = 1 << 20;

inline bool InArena(uint64_t address, uint64_t bytes) {
  return bytes <= kArenaBytes && address >= kArena && address - kArena <= kArenaBytes - bytes;
}

// What the program holds, and what the driver holds, for one name.
inline void* ProgramValue(HandleKind kind, HandleId id) {
  return reinterpret_cast<void*>(0x1'0000'0000 + static_cast<uint64_t>(kind) * 0x1000'0000 +
                                 static_cast<uint64_t>(id) * 16);
}
inline void* DriverValue(HandleKind kind, HandleId id) {
  return reinterpret_cast<void*>(0x7'0000'0000 + static_cast<uint64_t>(kind) * 0x1000'0000 +
                                 static_cast<uint64_t>(id) * 16);
}

class FakeCaller : public Caller {
 public:
  bool Find(HandleKind kind, const void* value, HandleId* id) override {
    const uint64_t offset = reinterpret_cast<uint64_t>(value) -
                            reinterpret_cast<uint64_t>(ProgramValue(kind, HandleId::kNull));
    *id = static_cast<HandleId>(offset / 16);
    return offset % 16 == 0 && offset / 16 < 0x10'0000 && IsClientName(*id) &&
           !gone.contains({kind, *id});
  }
  bool FindStream(const void* value, bool per_thread, HandleId* id) override {
    if (value == nullptr || value == CU_STREAM_LEGACY || value == CU_STREAM_PER_THREAD) {
      const bool legacy = value == CU_STREAM_LEGACY || (value == nullptr && !per_thread);
      *id = legacy ? HandleId::kLegacyStream : HandleId::kPerThreadStream;
      return true;
    }
    return Find(HandleKind::kStream, value, id);
  }
  bool Name(HandleKind kind, HandleId* id, void** value) override {
    *id = static_cast<HandleId>(next_++);
    *value = ProgramValue(kind, *id);
    named.insert({kind, *id});
    return true;
  }
  void Forget(HandleKind kind, HandleId id) override {
    if (named.erase({kind, id}) == 0) gone.insert({kind, id});
  }
  bool Accepts(uint64_t address, uint64_t bytes) override { return InArena(address, bytes); }
  bool ScalarsOnDevice(HandleKind, HandleId) override { return scalars_on_device; }
  size_t ScalarBytes(HandleId) override { return 4; }
  bool ResultSlot(HandleId, void*, size_t, uint64_t* address) override {
    *address = kArena + 64;
    return true;
  }

  bool scalars_on_device = false;
  std::set<std::pair<HandleKind, HandleId>> named, gone;

 private:
  uint32_t next_ = 500'000;
};

class FakeSession : public Session {
 public:
  bool Translate(HandleKind kind, HandleId id, void** driver_handle) override {
    if (refuse_handles || id == HandleId::kNull) return false;
    *driver_handle = DriverValue(kind, id);
    return true;
  }
  bool MayName(HandleKind kind, HandleId id) override { return !bound.contains({kind, id}); }
  void Bind(HandleKind kind, HandleId id, void* driver_handle) override {
    bound[{kind, id}] = driver_handle;
  }
  void Release(HandleKind kind, HandleId id) override { released.insert({kind, id}); }
  bool Accepts(uint64_t address, uint64_t bytes) override { return InArena(address, bytes); }
  bool AcceptsMatrix(uint64_t address, void*) override { return InArena(address, 1); }
  bool UsePointerMode(HandleKind, void*, bool device) override {
    device_mode = device;
    return true;
  }
  std::span<std::byte> Scratch() override { return scratch_; }

  bool refuse_handles = false;
  bool device_mode = false;
  std::map<std::pair<HandleKind, HandleId>, void*> bound;
  std::set<std::pair<HandleKind, HandleId>> released;

 private:
  alignas(16) std::array<std::byte, kBodyBytesMax / 16 * 16> scratch_;
};

}  // namespace ipc
