// The file that a session's device memory is in while it is in the host's: an unsealed memfd of the
// session, made by lanewayd, filled by its worker.
//
//     SwapHeader | SwapRecord[count] | from a page's edge on: the bytes of each record, in order
//
// lanewayd holds the descriptor and hands it to the next worker, so that the bytes outlive the one
// that wrote them. `count` is written last and cleared first: other than 0, all of it is there.
#pragma once

#include <atomic>
#include <cstdint>

namespace common {

struct SwapHeader {
  std::atomic<uint64_t> count;
};

struct SwapRecord {
  uint64_t address = 0;
  uint64_t bytes = 0;
  uint32_t device = 0;
  uint32_t kind = 0;  // the worker's affair
};

// Whether a session's memory lies in it. Thread safety: any thread.
bool HoldsMemory(int swap_fd);

}  // namespace common
