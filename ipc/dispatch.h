// The worker's dispatch: finds the function of an untrusted request by the request's opcode.
// Thread safety: as the Session's.
#pragma once

#include <cstdint>
#include <span>

#include "ipc/codec_worker.h"
#include "ipc/driver_table.h"

namespace ipc {

// Serves one request body. An opcode that this build does not know, or that has no wire form, is
// malformed. This is what the fuzzer of the codec feeds.
Served DispatchUntrusted(uint16_t op, std::span<const std::byte> request, const Targets& targets,
                         Session& session, Writer* reply);

// What makes the calls of a row; null for a row without a wire form.
Invoker InvokerOf(Op op);

}  // namespace ipc
