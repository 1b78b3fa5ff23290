// The messages that made each object and setting that is alive in the session's worker. When
// another worker takes the session over, the client sends these messages again.
//
// Not a history: an entry goes when its object ends or its setting is made anew. An entry is a
// message as it was sent; the names in it are the client's, so the same bytes mean the same object
// again. The log files an entry under the object that the message makes or sets, and under the
// object that the message refers to. The end of either object ends the entry.
//
// Positions. A message is in the log from the moment it is sent, and the worker may be lost before
// it has taken it. Entries therefore carry the ring positions at which they begin and end; what a
// new worker needs are the entries that begin at or before the position where the lost one stopped,
// and do not end there. What lies behind is sent again as it was (shim/rebuild/rebuild.h).
//
// Bounded: a log that outgrows its limits keeps nothing more, and says so (overflowed()).
// Thread safety: all methods; calls must come in the order of positions, which the client's send
// lock gives them.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "ipc/calls.h"
#include "ipc/handles.h"
#include "ipc/session_file.h"
#include "shim/lock_order.h"

namespace shim {

// The bytes of a module, kept once however often they are loaded.
using ModuleBytes = std::vector<std::byte>;

// An object by its name on the wire; kNone names nothing.
struct ObjectName {
  ipc::HandleKind kind = ipc::HandleKind::kNone;
  ipc::HandleId id = ipc::HandleId::kNull;
  bool operator==(const ObjectName&) const = default;
};

// One entry, as it is added.
struct Kept {
  ipc::Op op{};
  ObjectName subject;         // what it makes or sets; kNone: the session, by `detail` alone
  uint64_t detail = 0;        // which setting of the subject; 0: it makes the subject
  ObjectName refers_to;       // without which it makes no sense
  bool awaits_reply = false;  // Confirm() or Drop() follows
  std::span<const std::byte> message;
  std::shared_ptr<const ModuleBytes> image;  // of a module
};

class RebuildLog {
 public:
  using Token = uint32_t;
  static constexpr Token kNoToken = UINT32_MAX;
  struct Limits {
    size_t message_bytes = 64u << 20;
    size_t image_bytes = 1u << 30;
  };

  RebuildLog() : RebuildLog(Limits()) {}
  explicit RebuildLog(Limits limits) : limits_(limits) {}
  RebuildLog(const RebuildLog&) = delete;

  // The message that ends at `position` makes or sets something; an earlier entry of the same
  // subject and detail ends with it. The token serves Drop().
  Token Add(const Kept& kept, uint64_t position);
  // What a round trip told: the call has succeeded, or failed after all.
  void Confirm(Token token);
  void Drop(Token token);
  // The message that ends at `position` ends the object, and every entry that refers to it.
  // `consumed`: how far the worker has come; what ended before is forgotten.
  void End(ObjectName object, uint64_t position, uint64_t consumed);
  // The same for one setting.
  void EndDetail(ObjectName subject, uint64_t detail, uint64_t position, uint64_t consumed);
  // The same for every object; settings of the session itself stay.
  void EndObjects(uint64_t position, uint64_t consumed);

  struct Entry {
    ipc::Op op{};
    Token token = kNoToken;
    uint64_t detail = 0;
    bool confirmed = false;
    std::vector<std::byte> message;
    std::shared_ptr<const ModuleBytes> image;
  };
  // What a worker that is to go on from `position` must have, in the order of sending.
  std::vector<Entry> At(uint64_t position) const;
  // What lies behind `position` was sent again, `by` further on.
  void Shift(uint64_t position, uint64_t by);

  bool overflowed() const { return overflowed_.load(std::memory_order_relaxed); }
  // Something lives that no message makes again.
  void SetIncomplete(ipc::Obstacle why) { incomplete_.fetch_or(why, std::memory_order_relaxed); }
  // Why, as ipc::Obstacle.
  uint32_t incomplete() const { return incomplete_.load(std::memory_order_relaxed); }
  size_t size() const;  // entries alive
  // Whether this setting is alive.
  bool HasDetail(ObjectName subject, uint64_t detail) const;
  // Whether it is, and set as this message sets it.
  bool HasSame(const Kept& kept) const;

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  static constexpr uint64_t kAlive = UINT64_MAX;
  static constexpr size_t kInlineBytes = 96;

  struct Record {
    uint64_t sequence = 0;  // the order of sending; 0: this record is free
    uint64_t begin = 0;
    uint64_t end = kAlive;
    uint64_t detail = 0;
    ObjectName subject;
    ObjectName refers_to;
    uint32_t before[2] = {kNone, kNone};  // in the chains of subject and of refers_to
    uint32_t after[2] = {kNone, kNone};
    ipc::Op op{};
    bool confirmed = false;
    uint32_t bytes = 0;
    std::array<std::byte, kInlineBytes> inside;
    std::unique_ptr<std::byte[]> outside;  // longer messages
    std::shared_ptr<const ModuleBytes> image;
  };
  struct SettingKey {
    ObjectName subject;
    uint64_t detail = 0;
    bool operator==(const SettingKey&) const = default;
  };
  struct SettingHash {
    size_t operator()(const SettingKey& key) const {
      return (key.detail ^ static_cast<uint64_t>(key.subject.id) << 40) * 0x9e3779b97f4a7c15;
    }
  };
  struct Chains {
    uint32_t first[2] = {kNone, kNone};
  };

  Chains* ChainsOf(ObjectName object) REQUIRES(mutex_);
  const Chains* FindChains(ObjectName object) const REQUIRES(mutex_);
  uint32_t FindSetting(ObjectName subject, uint64_t detail) const REQUIRES(mutex_);
  uint32_t TakeRecord() REQUIRES(mutex_);
  void Link(uint32_t index, int which, ObjectName object) REQUIRES(mutex_);
  void Unlink(uint32_t index, int which, ObjectName object) REQUIRES(mutex_);
  void EndRecord(uint32_t index, uint64_t position) REQUIRES(mutex_);
  void Free(uint32_t index) REQUIRES(mutex_);
  void ForgetConsumed(uint64_t consumed) REQUIRES(mutex_);

  const Limits limits_;
  mutable base::Mutex mutex_ ACQUIRED_AFTER(lock_order::kKeeping);
  std::deque<Record> records_ GUARDED_BY(mutex_);
  std::vector<uint32_t> free_ GUARDED_BY(mutex_);
  // Ended by messages that the worker had not taken at the last look.
  std::deque<uint32_t> ended_ GUARDED_BY(mutex_);
  std::array<std::vector<Chains>, static_cast<size_t>(ipc::HandleKind::kCount)> by_name_
      GUARDED_BY(mutex_);
  // Settings of what has many of them: the session, and pieces of graphs.
  std::unordered_map<SettingKey, uint32_t, SettingHash> many_ GUARDED_BY(mutex_);
  uint64_t last_sequence_ GUARDED_BY(mutex_) = 0;
  size_t alive_ GUARDED_BY(mutex_) = 0;
  size_t message_bytes_ GUARDED_BY(mutex_) = 0;
  size_t image_bytes_ GUARDED_BY(mutex_) = 0;
  std::atomic<bool> overflowed_{false};
  std::atomic<uint32_t> incomplete_{0};
};

}  // namespace shim
