// What the exported entry points of kSync, kAsync and kDeny rows do.
// Thread safety: any thread.
#pragma once

#include <cstdint>

#include "ipc/codec_client.h"
#include "shim/state.h"

namespace shim {

// Sends a driver call as its row says, with the current context, and returns its CUresult.
uint32_t ForwardDriver(ipc::Op op, ipc::Values values);

// Streams that a message needs by name must exist before the send lock is taken: finds those of
// the call, and creates the thread's own. *used: the last of them, null when the call names none.
CUresult ResolveStreams(const ipc::Row& row, ipc::Values values, const Context& context,
                        uint64_t context_value, Stream** used);

// The library's "not supported" status, with the row's reason on stderr once per call.
uint32_t Deny(ipc::Op op);

}  // namespace shim
