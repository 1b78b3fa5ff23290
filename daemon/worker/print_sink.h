// Where the kernels of one session print: into the session's file, for its client to take.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/mutex.h"
#include "daemon/worker/stream_owners.h"
#include "ipc/session_file.h"

namespace worker {

// Thread safety: any thread.
class PrintSink final : public StreamOwner {
 public:
  // `file` outlives this object.
  PrintSink(uint64_t session_id, ipc::SessionFile* file) : session_id_(session_id), file_(*file) {}
  PrintSink(const PrintSink&) = delete;

  uint64_t session_id() const override { return session_id_; }
  // Text that the program has not taken for long is lost, as from the driver's own buffer.
  void Print(std::string_view text) override {
    const base::MutexLock lock(&mutex_);
    file_.prints()->Append(text);
  }

 private:
  const uint64_t session_id_;
  ipc::SessionFile& file_;
  base::Mutex mutex_;  // one writer at a time
};

}  // namespace worker
