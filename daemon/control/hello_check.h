// Checks whether a hello may become a session: pure, so that it can be fuzzed. Also the answers to
// a program that is refused or has to wait. Thread safety: stateless.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <span>
#include <string>

#include "daemon/control/session_table.h"
#include "ipc/hello.h"

namespace control {

// On refusal `welcome` holds code and sentence and the result is false. On success every text in
// `hello` is zero-terminated and every enum is known.
bool CheckHelloUntrusted(std::span<const std::byte> bytes, uid_t peer, uid_t owner,
                         ipc::Hello* hello, ipc::Welcome* welcome);

// A program that goes on by itself says how much device memory it has.
struct HeldClaim {
  uint64_t claimed_bytes = 0;
  uint64_t capacity_bytes = 0;  // of the device
  uint64_t used_bytes = 0;      // of the device, by all sessions
  uint64_t counted_bytes = 0;   // of used_bytes: counted for this program before
  uint64_t limit_bytes = 0;     // of its job; 0: none. May be less than the program holds.
};
// As much of it as can be.
uint64_t Believed(const HeldClaim& claim);

void Refuse(ipc::Welcome* welcome, unsigned code, const std::string& sentence);

inline std::span<const std::byte> BytesOf(const ipc::Welcome& welcome) {
  return {reinterpret_cast<const std::byte*>(&welcome), sizeof welcome};
}

// Tells the session's program that it gets no session.
void TellRefused(const Session& session, unsigned code, const std::string& sentence);
// Tells the session's program that it has to wait for another welcome, and why.
void TellQueued(const Session& session, const std::string& reason);

}  // namespace control
