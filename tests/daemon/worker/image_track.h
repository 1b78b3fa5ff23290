// The track of records that the worker writes (ipc/work_records.h), read as a command reads it.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "ipc/call_trace.h"

namespace worker {

class ImageTrack {
 public:
  ipc::TraceWriter Writer() { return ipc::TraceWriter(area_.get(), ipc::kImageTrack, 1); }

  // Calls take(bytes) with those of each record since the last call.
  template <class Take>
  void TakeAll(ipc::TraceKind kind, const Take& take) {
    std::vector<std::byte> bytes;
    reader_.TakeUntrusted(ipc::kTrackEventsMax, &bytes);
    for (size_t at = 0; at < bytes.size();) {
      ipc::TraceEvent event;
      std::memcpy(static_cast<void*>(&event), bytes.data() + at, sizeof event);
      EXPECT_EQ(event.kind, kind);
      take(std::span(bytes).subspan(at + sizeof event, event.amount));
      at += ipc::PlacesOfRecord(event.amount) * sizeof event;
    }
  }

 private:
  struct Free {
    void operator()(std::byte* area) const { std::free(area); }
  };
  std::unique_ptr<std::byte, Free> area_{[] {
    void* const made = std::aligned_alloc(4096, ipc::kTraceAreaBytes);
    std::memset(made, 0, ipc::kTraceAreaBytes);
    return static_cast<std::byte*>(made);
  }()};
  ipc::TraceReader reader_{area_.get(), ipc::kImageTrack};
};

}  // namespace worker
