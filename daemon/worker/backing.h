// Ranges of reserved addresses with physical memory behind them.
//
// A range is backed by extents of powers of two, the largest first, so that few mappings make a
// large one (the driver cannot unmap a part of a mapping, and wants access set after each map).
// Memory that another tenant may have written is zeroed before anybody sees it. Thread safety: none
// of its own; the driver's calls may come from any thread.
#pragma once

#include <cstdint>
#include <vector>

#include "daemon/worker/session.h"
#include "ipc/calls/limits.h"

namespace worker {

// One extent at its address.
struct Piece {
  CUdeviceptr address = 0;
  Extent extent;
};

// To what extents are made of.
inline uint64_t RoundUpToExtent(uint64_t bytes) {
  constexpr uint64_t kStep = ipc::limits::kExtentBytesMin;
  return (bytes + kStep - 1) / kStep * kStep;
}

uint64_t BytesOf(const std::vector<Piece>& pieces);

// Maps the extent and opens it to its device. What is mapped here, and nothing else, may be touched
// by sessions (backed_addresses.h).
CUresult MapExtent(const Environment& environment, int device, CUdeviceptr address,
                   const Extent& extent);
void Unmap(const Environment& environment, const Piece& piece);

// Zeroes those mapped pieces that must be.
CUresult ClearPieces(const Environment& environment, int device, const std::vector<Piece>& pieces);

// Backs [address, + bytes) with extents like `wanted`, whose sizes and addresses it fills in.
// REQUIRES: multiples of limits::kExtentBytesMin; extent_bytes_max is a power of two. All or
// nothing; the keeper's error when it has no room.
CUresult Back(const Environment& environment, ExtentRecord wanted, uint64_t bytes,
              uint64_t extent_bytes_max, std::vector<Piece>* pieces);
// Maps again what the records say, at their addresses. All or nothing.
CUresult BackAgain(const Environment& environment, const std::vector<ExtentRecord>& records,
                   std::vector<Piece>* pieces);

// Unmaps; the extents are given up, or left to their owner.
void FreePieces(const Environment& environment, const std::vector<Piece>& pieces);
void DropPieces(const Environment& environment, const std::vector<Piece>& pieces);

}  // namespace worker
