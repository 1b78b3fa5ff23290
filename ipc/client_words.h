// The end of the session's page: figures of the client for people. Only the client writes here, and
// it may write anything: a reader bounds each value and bases no decision on it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "ipc/calls/limits.h"
#include "ipc/session_file.h"

namespace ipc {

// Says whether the session's iterations are replayed, and why not (shim/benefit_gate.h).
enum class ReplayState : uint32_t {
  kOff,           // the user has not asked for it, or the transport can't
  kNoIterations,  // none were found so far
  kLearning,      // runs of calls are learned
  kComparing,     // forwarded and replayed iterations take turns, and are timed
  kReplaying,
  kNothingRepeats,  // the calls of iterations differ
  kSlower,          // replayed iterations took longer than forwarded ones
};

struct ClientWords {
  // By device: mapped ranges in which nothing is live. The program's own queries call them free.
  std::atomic<uint64_t> empty_bytes[limits::kLegacySlots];
  std::atomic<uint32_t> replay_state;     // ReplayState
  std::atomic<uint32_t> replay_permille;  // time of a replayed iteration to that of a forwarded one
  std::atomic<uint32_t> replay_kept;      // 1: an earlier start has measured that
  std::atomic<uint32_t> comparisons;      // of forwarded and replayed iterations, begun
  std::atomic<uint32_t> verdicts_told;    // ipc/verdict_area.h
};

static_assert(sizeof(SessionPage) + sizeof(ClientWords) <= kPageBytes);

inline ClientWords* ClientWordsOf(SessionPage* page) {
  std::byte* const end = reinterpret_cast<std::byte*>(page) + kPageBytes;
  return reinterpret_cast<ClientWords*>(end - sizeof(ClientWords));
}

}  // namespace ipc
