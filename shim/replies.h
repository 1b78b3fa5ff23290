// Replies to calls that a thread of the program waits for.
//
// Replies come back in any order. One waiting thread, the leader, reads the channel for all. The
// other threads sleep until the leader has their replies, or hands the reading on. No wait is
// unbounded: each nap ends with a look at the session (Upkeep).
//
// Thread safety: all methods from any thread, after Open().
#pragma once

#include "ipc/calls/vendor.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/mutex.h"
#include "ipc/channel.h"
#include "ipc/session_file.h"
#include "shim/lock_order.h"
#include "shim/upkeep.h"

namespace shim {

// One reply that a thread waits for. The thread owns it, from before the call is sent until
// Forget().
struct PendingReply {
  uint32_t request = 0;  // MessageHeader::request, which the reply repeats
  std::atomic<uint32_t> done{0};
  std::vector<std::byte> bytes;  // header included
};

class Replies {
 public:
  // All three outlive this object. REQUIRES: once, before any other method.
  void Open(ipc::Receiver* receiver, ipc::SessionPage* page, Upkeep* upkeep);

  // REQUIRES: before the call is sent; later its reply would be thrown away.
  void Register(PendingReply* pending);
  void Forget(PendingReply* pending);
  // Waits until the reply is there. Otherwise the code of the lost session. While another worker is
  // to be told of the session, the waiting thread does that.
  CUresult Wait(PendingReply* pending);
  // The same for the thread that tells a worker: 600 when the page names another generation than
  // `generation`, so that yet another worker has the session.
  CUresult WaitInRebuild(PendingReply* pending, uint32_t generation);

 private:
  // `rebuild_of`: the generation that a rebuild is for; 0: any other thread waits.
  bool IsInterrupted(uint32_t rebuild_of) const;
  void ReadForAll(PendingReply* mine, uint32_t rebuild_of);
  void ReadOrFollow(PendingReply* mine, uint32_t rebuild_of);
  void FollowReader(PendingReply* mine);
  bool Deliver(std::span<const std::byte> message, const PendingReply* mine);
  void WakeFollowers();

  ipc::Receiver* receiver_ = nullptr;
  ipc::SessionPage* page_ = nullptr;
  Upkeep* upkeep_ = nullptr;
  base::Mutex mutex_ ACQUIRED_AFTER(lock_order::kKeeping);
  std::vector<PendingReply*> pending_ GUARDED_BY(mutex_);
  std::atomic<bool> reading_{false};  // some thread is the leader
  std::atomic<uint32_t> followers_word_{0};
  std::atomic<uint32_t> followers_sleeping_{0};
};

}  // namespace shim
