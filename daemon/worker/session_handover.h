// Moves a session from one worker to another: takes the session over, publishes the points at which
// a successor could go on, and leaves the session at such a point. docs/recovery.md has the whole.
//
//     AwaitClient -> serve <-> quiet point -> Release() -> TryLeave -> Left
//
// A quiet point is a position of the ring up to which everything is complete on the device: a
// successor goes on from there, and a session that is at one loses nothing with its worker.
// Thread safety: Release(), released() and quiet() from any thread; the rest on the session's.
#pragma once

#include <atomic>
#include <cstdint>

#include "daemon/worker/parking.h"
#include "daemon/worker/session_life.h"
#include "ipc/session_file.h"

namespace worker {

// The session, as its handover sees it.
class Quiesce {
 public:
  virtual ~Quiesce() = default;
  // Frees what the device is done with; false when it still uses some of what the program freed.
  virtual bool PollFrees() = 0;
  // True when the device has done everything that the session was told, nothing of the session lies
  // in its lane, and no call is half received.
  virtual bool IsComplete() = 0;
  // A quiet point is about to be published: saves what a successor reads besides memory.
  virtual void SaveForSuccessor() = 0;
  // True when the session is where it may leave its lane.
  virtual bool MayLeave() = 0;
};

class SessionHandover {
 public:
  // All outlive this object.
  struct Surroundings {
    ipc::SessionPage* page;
    SessionLife* life;
    Parking* parking;
    Quiesce* quiesce;
  };
  explicit SessionHandover(const Surroundings& around) : around_(around) {}
  SessionHandover(const SessionHandover&) = delete;

  // Another worker goes on with the session.
  void Release();
  bool wanted() const { return wanted_.load(std::memory_order_relaxed); }
  // The session was left to its successor.
  bool released() const { return released_.load(); }
  void Left() { released_.store(true); }

  // --- taking over
  enum class Entry {
    kServe,  // the client has put its ring in order, or was never in another worker
    kLeave,  // another worker is to go on before that
    kEnd,
  };
  Entry AwaitClient();

  // --- quiet points
  // Everything taken so far is complete, and the page says so.
  bool quiet() const { return quiet_.load(); }
  // A message was taken. Returns whether the session was quiet before it. Only the session's thread
  // writes the word, so within a run of messages an atomic write would change nothing.
  bool OnTaken() { return quiet_.load(std::memory_order_relaxed) && quiet_.exchange(false); }
  // The message that was taken at the last quiet point had no effect: a successor takes it again.
  void UndoTaken();
  // Publishes a quiet point when the session is at one.
  void Publish();

  // --- leaving
  // Waits a little, taking no message, until the session is quiet. False: it is to go on.
  bool TryLeave();

 private:
  const Surroundings around_;
  std::atomic<bool> wanted_{false};
  std::atomic<bool> released_{false};
  std::atomic<bool> quiet_{true};
};

}  // namespace worker
