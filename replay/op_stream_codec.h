// The canonical encoding of an op stream, for keeping it longer than its session.
//
// One stream has one encoding, and a decoder accepts no other bytes. All integers are
// little-endian:
//   8 bytes magic; 4 bytes number of callees; 4 bytes number of operations
//   callee:     1 kind, 32 module, 4 argument bytes, then a 2-byte count and that many of: bytes of
//               the name; bytes of the attributes; fields of 2 bytes offset and 2 bytes size
//   operation:  2 callee, 4 stream, 1 whether the host waited, then its words in order: of 8 bytes,
//               1 byte SlotPart and the offset or number; of fewer, as they are
// Callees are those of the stream, in the order of their first operation. Addresses are offsets, so
// that a stream recorded in one slot is decoded for another.
// Thread safety: functions without state.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "replay/op_stream.h"
#include "replay/slot_address.h"

namespace replay {

// The stream's callees are in `callees`; its addresses are those of `slot`.
std::vector<std::byte> EncodeOps(const OpStream& ops, const Callees& callees, const Slot& slot);

// The stream for a session in `slot`; its callees are added to `callees`. nullopt: the bytes are no
// encoding of a stream, `callees` is full, or a number in the bytes would be an address in `slot`.
std::optional<OpStream> DecodeOpsUntrusted(std::span<const std::byte> bytes, const Slot& slot,
                                           Callees* callees);

}  // namespace replay
