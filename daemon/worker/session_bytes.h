// The contents of a session's device memory, kept on the host for a moment, to be compared or put
// back. What the session has not backed is not in it, nor are variables of modules.
//
// REQUIRES of all: the device does no work of the session, whose thread it is, and nothing of the
// memory goes in between.
#pragma once

#include "ipc/calls/vendor.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "daemon/worker/own_addresses.h"
#include "daemon/worker/session.h"

namespace worker {

class SessionBytes {
 public:
  // Copies everything that is backed to the host, but for what begins in `left_out`. Nothing: it is
  // more than `bytes_max`, or the device refuses.
  static std::optional<SessionBytes> Save(const Environment& environment, int device,
                                          const OwnAddresses& addresses,
                                          const AddressSpan& left_out, uint64_t bytes_max);

  // Puts all of it back.
  CUresult Restore(const Environment& environment, int device) const;
  // The address of the first byte that differs; nothing: none does, or they are of other ranges.
  std::optional<uint64_t> FirstDifference(const SessionBytes& other) const;
  // True when one of the 64-bit words, each at a multiple of its size, is of this kind.
  bool AnyWord(bool (*is_of_kind)(uint64_t word)) const;
  // REQUIRES: an address that is in it.
  std::byte At(uint64_t address) const;

 private:
  struct Range {
    uint64_t address = 0;
    std::vector<std::byte> bytes;
  };
  std::vector<Range> ranges_;
};

}  // namespace worker
