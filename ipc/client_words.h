// The end of the session's page: figures of the client for people. Only the client writes here, and
// it may write anything: a reader bounds each value and bases no decision on it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "ipc/calls/limits.h"
#include "ipc/session_file.h"

namespace ipc {

struct ClientWords {
  // By device: mapped ranges in which nothing is live. The program's own queries call them free.
  std::atomic<uint64_t> empty_bytes[limits::kLegacySlots];
};

static_assert(sizeof(SessionPage) + sizeof(ClientWords) <= kPageBytes);

inline ClientWords* ClientWordsOf(SessionPage* page) {
  std::byte* const end = reinterpret_cast<std::byte*>(page) + kPageBytes;
  return reinterpret_cast<ClientWords*>(end - sizeof(ClientWords));
}

}  // namespace ipc
