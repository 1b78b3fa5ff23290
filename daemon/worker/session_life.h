// Says whether a session goes on: the worker's own word about its end and its loss.
//
// The words of the session's page are for the client alone, which can write them, too. Thread
// safety: any thread.
#pragma once

#include "ipc/calls/vendor.h"

#include <atomic>
#include <cstdint>

#include "ipc/session_file.h"

namespace worker {

// True when CUDA allows nothing more in the process after this error.
bool IsSticky(CUresult result);

class SessionLife {
 public:
  // `page` outlives this object. `generation` is SessionSetup's.
  SessionLife(ipc::SessionPage* page, uint32_t generation)
      : page_(*page), generation_(generation) {}
  SessionLife(const SessionLife&) = delete;

  // False once the session is lost or stopped, for good.
  bool Alive() const;
  // Ends the session and tells its client why.
  void Lose(const char* text, CUresult code = CUDA_ERROR_MPS_RPC_FAILURE);
  // lanewayd reads the bit: whether the session may be rebuilt in another worker.
  void SetObstacle(ipc::Obstacle bit, bool is_there);
  void Stop() { stop_.store(true); }
  // True when the client, on its way from another worker to this one, still puts its objects in
  // order.
  bool Replays() const;
  // The generation that the client must acknowledge first; 0: no other worker served it before.
  uint32_t generation() const { return generation_; }

 private:
  ipc::SessionPage& page_;
  const uint32_t generation_;
  std::atomic<bool> stop_{false};
  mutable std::atomic<bool> lost_{false};
};

}  // namespace worker
