// The checks at the door: may this hello become a session? Pure, so that it can be fuzzed.
// Thread safety: stateless.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <span>
#include <string>

#include "ipc/hello.h"

namespace control {

// On refusal `welcome` holds code and sentence and the result is false. On success every text in
// `hello` is zero-terminated and every enum is known.
bool CheckHelloUntrusted(std::span<const std::byte> bytes, uid_t peer, uid_t owner,
                         ipc::Hello* hello, ipc::Welcome* welcome);

void Refuse(ipc::Welcome* welcome, unsigned code, const std::string& sentence);

}  // namespace control
