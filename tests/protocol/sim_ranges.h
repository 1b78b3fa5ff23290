// A session's persistent memory in a simulated worker, which lies at the same addresses wherever
// the session is served. Thread safety: one thread.
#pragma once

#include <cstdint>
#include <map>

#include "daemon/worker/lanes.h"
#include "daemon/worker/session.h"
#include "ipc/control.h"
#include "tests/protocol/program.h"

namespace protocol {

// Where a slot's addresses begin.
inline CUdeviceptr SlotAddress(uint32_t slot) {
  return ipc::limits::kSlotBase + slot * ipc::limits::kSlotBytes;
}

class SimRanges {
 public:
  SimRanges(const worker::Environment* environment, Program* program,
            const ipc::control::SessionRecord& record);
  // An error of the keeper, and nothing is there.
  CUresult Map(uint64_t address, uint64_t bytes);
  uint64_t Unmap(uint64_t address);  // returns the bytes
  void UnmapAll();
  void DropAll();      // they stay the session's
  CUresult Restore();  // as an earlier worker left them
  void SwapOut(bool with_lane);
  CUresult SwapIn();  // all that lies on the host, or nothing
  uint64_t bytes() const { return bytes_; }
  const std::map<uint64_t, worker::Extent>& ranges() const { return ranges_; }

 private:
  const worker::Environment& environment_;
  Program* const program_;
  const uint64_t session_;
  const CUdeviceptr base_;
  std::map<uint64_t, worker::Extent> ranges_;  // by address
  uint64_t bytes_ = 0;
};

}  // namespace protocol
