// Tells a session's client how far its streams are, by completion words, and wakes the client.
//
// A mark is a number that the device writes behind what is on the stream (ipc::CompletionWords). A
// client that sleeps until a mark is rung by a driver's callback. While the session's lane is being
// handed over, the bell waits: waking the client keeps the device's thread for longer, and the next
// session goes first. Thread safety: the session's thread, but for Ring() and EndHandOver(), which
// are for any.
#pragma once

#include "ipc/calls/vendor.h"

#include <atomic>
#include <vector>

#include "daemon/worker/device_callbacks.h"
#include "daemon/worker/streams.h"
#include "daemon/worker/thread_courtesy.h"
#include "ipc/calls/laneway_calls.h"
#include "ipc/session_file.h"

namespace worker {

class ClientBell {
 public:
  // All outlive this object.
  ClientBell(const Environment& environment, ipc::SessionFile* file, DeviceCallbacks* callbacks,
             ThreadCourtesy* courtesy);
  ClientBell(const ClientBell&) = delete;

  // A message came: the client is awake.
  void OnMessage() { client_sleeps_ = false; }
  // True when the client waits until the device has done what was sent last.
  bool client_sleeps() const { return client_sleeps_; }

  CUresult PlaceMark(StreamTable::Stream* stream, const ipc::Mark& mark);
  // Instead of PlaceMark, when all on the stream is complete, also the work that the mark came
  // with.
  void ReachMark(StreamTable::Stream* stream, const ipc::Mark& mark);
  // Rings once the device has done what is on the stream, or has failed.
  CUresult RingAfter(StreamTable::Stream* stream);
  // Rings now, or when the lane is handed over.
  void Ring();

  // The lane is handed over when these streams are done. The bell waits for that when the client
  // sleeps until the same moment.
  void BeginHandOver(const std::vector<StreamTable::Stream*>& busy);
  // The lane has been handed over: rings when the bell has waited.
  void EndHandOver();

 private:
  void RingNow();

  const ipc::DriverTable& driver_;
  ipc::SessionFile& file_;
  DeviceCallbacks& callbacks_;
  DeviceCallbacks::Task ring_after_work_;
  bool client_sleeps_ = false;
  const StreamTable::Stream* rung_after_ = nullptr;  // the stream that the client sleeps for
  std::atomic<bool> waits_{false};                   // for the end of the hand-over
  std::atomic<bool> owed_{false};                    // it would have rung meanwhile
};

}  // namespace worker
