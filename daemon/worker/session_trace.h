// A session's part of `laneway trace JOB --calls` (ipc/call_trace.h): what its thread in the worker
// serves and waits for, and when the device did it, with the names of kernels. In detail
// (ipc/work_records.h) the images of its modules in place of names.
//
// While the session is not traced, a message costs one look at a word. Thread safety: one session's
// thread.
#pragma once

#include <cstdint>

#include "daemon/worker/call_context.h"
#include "daemon/worker/device_times.h"
#include "daemon/worker/image_teller.h"
#include "daemon/worker/kernel_names.h"
#include "daemon/worker/streams.h"
#include "ipc/message.h"
#include "ipc/session_file.h"
#include "ipc/trace_switch.h"

namespace worker {

class SessionTrace final : public StreamTable::Watcher {
 public:
  // All outlive this object.
  SessionTrace(const ipc::DriverTable& driver, const ipc::SessionFile& file,
               const LoadedImages& images)
      : file_(file),
        switch_(*ipc::TraceSwitchOf(file.page())),
        device_(driver),
        kernels_(driver, &images),
        images_(&images) {}
  SessionTrace(const SessionTrace&) = delete;

  // A message is about to be served. `is_work`: it gives the device work.
  void OnTaken(bool is_work) {
    if (switch_.number.load(std::memory_order_relaxed) != 0) [[unlikely]]
      Begin(is_work);
  }
  // Notes on the message that is being served.
  void NoteReplay(uint32_t launches) { launches_ = launches; }
  void NoteFailure() { failed_ = true; }
  // The message was served; `call`: what it named.
  void OnServed(const ipc::MessageHeader& header, const CallContext& call) {
    if (begin_ns_ != 0) [[unlikely]]
      End(header, call);
  }
  // The session's thread found no message.
  void OnSilence() {
    if (device_.open() || switch_.details.load(std::memory_order_relaxed) != 0) [[unlikely]]
      Collect();
  }
  // The thread has waited for something else than a message.
  void OnWaited(ipc::WaitState reason, int64_t begin_us);
  // The driver's objects go.
  void Clear() { device_.Clear(); }

  // StreamTable::Watcher
  void OnUse(const StreamTable::Stream& stream) override;

 private:
  void Begin(bool is_work);
  void End(const ipc::MessageHeader& header, const CallContext& call);
  // The number of the name of the kernel that was launched; 0: none, or it is not told.
  uint32_t KernelOf(const ipc::MessageHeader& header, const CallContext& call);
  void Collect();
  // False: the trace has ended.
  bool Open(int64_t now_ns);

  const ipc::SessionFile& file_;
  ipc::TraceSwitch& switch_;
  DeviceTimes device_;
  uint32_t number_ = 0;  // of the trace that the tracks are written for
  ipc::TraceWriter served_;
  ipc::TraceWriter done_;
  KernelNames kernels_;  // of a trace without details
  ImageTeller images_;   // of one in detail
  // Of the message that is being served.
  int64_t begin_ns_ = 0;               // 0: it is not traced
  uint32_t launches_ = 0;              // replayed as one graph; 0: none
  uint32_t slot_ = ipc::kNoTraceSlot;  // of the stream that was used last
  bool failed_ = false;
};

}  // namespace worker
