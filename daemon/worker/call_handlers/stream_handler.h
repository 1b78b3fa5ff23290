// Serves the calls about streams, events and host functions (ipc::StreamCalls). It knows where each
// event was recorded last, and keeps the times of events for the next worker. Thread safety: one
// session's thread.
#pragma once

#include "ipc/calls/vendor.h"

#include "absl/container/flat_hash_map.h"
#include "daemon/worker/call_context.h"
#include "daemon/worker/client_bell.h"
#include "daemon/worker/event_times.h"
#include "daemon/worker/handle_map.h"
#include "daemon/worker/holdings.h"
#include "ipc/door.h"
#include "ipc/session_file.h"

namespace worker {

class StreamHandler final : public ipc::StreamCalls {
 public:
  // `swap_file` is EventTimes'. All outlive this object.
  StreamHandler(Holdings* held, CallContext* call, ClientBell* bell, ipc::SessionFile* file,
                int swap_file);
  StreamHandler(const StreamHandler&) = delete;

  // The call that was served is work on the stream that it names.
  void NoteWork() {
    if (call_.stream != nullptr) last_work_ = call_.stream;
  }
  // The stream of the session's last work; null: unknown.
  const StreamTable::Stream* last_work() const { return last_work_; }

  void OnBindEvent(ipc::HandleId id, CUevent event) { times_.OnBind(id, event); }
  void OnReleaseEvent(ipc::HandleId id, CUevent event);
  // Before a quiet point is published: the worker that goes on from there has all times. REQUIRES:
  // the device has finished.
  void SaveTimes();
  EventTimes* times() { return &times_; }

  // All events go.
  void DestroyEvents(HandleMap* handles);

  // --- ipc::StreamCalls
  CUresult StreamCreate(CUstream* stream, unsigned flags, int priority, unsigned slot) override;
  CUresult StreamDestroy(CUstream stream) override;
  CUresult StreamMark(CUstream, ipc::Mark mark) override;
  CUresult StreamsJoin() override;
  CUresult EventRecord(CUevent event, CUstream stream, ipc::Mark mark) override;
  CUresult EventWake(CUevent event) override;
  CUresult HostCall(CUstream stream, uint64_t ticket, ipc::Mark mark) override;

 private:
  struct LastRecord {
    CUstream stream;
    ipc::HandleId id;
    int device;
    bool saved;  // its time, in times_
  };

  const ipc::DriverTable& driver_;
  Holdings& held_;
  CallContext& call_;
  ClientBell& bell_;
  ipc::SessionFile& file_;
  EventTimes times_;
  absl::flat_hash_map<CUevent, LastRecord> records_;
  bool unsaved_ = false;  // some of records_
  const StreamTable::Stream* last_work_ = nullptr;
};

}  // namespace worker
