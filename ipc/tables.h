// Which calls a peer knows, so that client, daemon and worker of different builds can talk: rows
// are only ever added at the end of a table, and two builds understand each other when the rows
// that both have are the same. What only one of them has the client never sends.
//
// Thread safety: functions without state.
#pragma once

#include <cstdint>

#include "ipc/calls.h"

namespace ipc {

// How many rows of each library, and TableHash() over them.
struct Tables {
  uint32_t rows[kLibraries] = {};
  uint64_t hash[kLibraries] = {};
};

Tables OwnTables();

// True when the peer's rows are the first of ours. Of a library that the peer knows more of than we
// do, only the peer can tell: also true.
bool Understands(const Tables& peer);

// True when all of the peer's calls are ours.
bool Serves(const Tables& peer);

// The calls that both have. REQUIRES: Understands(peer).
Tables CommonTables(const Tables& peer);

inline bool Knows(const Tables& peer, Op op) {
  return IndexOf(op) < peer.rows[static_cast<size_t>(LibraryOf(op))];
}

}  // namespace ipc
