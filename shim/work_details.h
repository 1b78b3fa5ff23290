// What the client sends and waits for, in records of the session's trace (ipc/work_records.h), for
// `laneway graph`. Nothing is written, and nothing is looked at, unless the session is traced in
// detail. Then a launch's record also says where the memory is that its parameters point to, which
// the client alone knows.
//
// Thread safety: all methods; OnSent under the send lock, so that records have the order of
// messages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/mutex.h"
#include "ipc/call_trace.h"
#include "ipc/calls.h"
#include "ipc/codec.h"
#include "ipc/work_records.h"
#include "shim/lock_order.h"

namespace shim {

class WorkDetails {
 public:
  static WorkDetails& Process();

  struct Sent {
    ipc::Op op{};
    ipc::Values values = nullptr;
    uint32_t slot = ipc::kNoTraceSlot;  // of the stream that it goes to
    uint32_t device = 0;
    bool begins_iteration = false;
  };
  // The number of the message's record, even if the record finds no room. 0: the session is not
  // traced in detail.
  uint32_t OnSent(const Sent& sent) EXCLUDES(mutex_);
  void OnWaited(ipc::WaitedFor what, uint32_t slot, uint64_t event) EXCLUDES(mutex_);

 private:
  WorkDetails() = default;

  bool Open() REQUIRES(mutex_);
  void AddArguments(const Sent& sent, ipc::SentHead* head) REQUIRES(mutex_);
  void AddKernel(const Sent& sent, ipc::SentHead* head) REQUIRES(mutex_);
  void AddRanges(std::span<const std::byte> words, ipc::SentHead* head) REQUIRES(mutex_);
  void Write(ipc::TraceKind kind, uint16_t op, uint32_t slot) REQUIRES(mutex_);
  template <class T>
  void Append(const T& value) REQUIRES(mutex_);
  void AppendPadded(std::span<const std::byte> bytes) REQUIRES(mutex_);

  base::Mutex mutex_ ACQUIRED_AFTER(lock_order::kSending) ACQUIRED_BEFORE(lock_order::kKeeping);
  uint32_t trace_ GUARDED_BY(mutex_) = 0;  // that the writer is of
  uint32_t number_ GUARDED_BY(mutex_) = 0;
  ipc::TraceWriter writer_ GUARDED_BY(mutex_);
  std::vector<std::byte> bytes_ GUARDED_BY(mutex_);  // of the record that is made
};

}  // namespace shim
