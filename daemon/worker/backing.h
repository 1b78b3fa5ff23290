// Ranges of reserved addresses with physical memory behind them.
//
// A range is backed by extents of powers of two, the largest first, so that few mappings make a
// large one (the driver cannot unmap a part of a mapping, and wants access set after each map).
// Thread safety: none of its own; the driver's calls may come from any thread.
#pragma once

#include <cstdint>
#include <vector>

#include "daemon/worker/session.h"

namespace worker {

// One extent at its address.
struct Piece {
  CUdeviceptr address = 0;
  Extent extent;
};

// Maps the extent and opens it to its device.
CUresult MapExtent(const Environment& environment, int device, CUdeviceptr address,
                   const Extent& extent);

class Backing {
 public:
  Backing(const Environment& environment, uint64_t session_id)
      : environment_(environment), session_id_(session_id) {}
  Backing(const Backing&) = delete;

  // REQUIRES: multiples of limits::kExtentBytesMin. All or nothing; the keeper's error when it has
  // no room. `extent_bytes_max` is a power of two.
  CUresult Back(int device, CUdeviceptr address, uint64_t bytes, uint64_t extent_bytes_max,
                std::vector<Piece>* pieces) const;
  // Unmaps, and gives the extents back to the keeper.
  void Release(const std::vector<Piece>& pieces) const;

 private:
  const Environment& environment_;
  const uint64_t session_id_;
};

uint64_t BytesOf(const std::vector<Piece>& pieces);

}  // namespace worker
