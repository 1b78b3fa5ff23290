// What the detector is told about a call: nothing for calls that are no device work, and no
// addresses.
// Thread safety: TokenOf under the send lock.
#pragma once

#include <optional>

#include "ipc/calls.h"
#include "ipc/codec.h"
#include "shim/iterations/history.h"

namespace shim::iterations {

// `values` as the codec gets them. A further chunk of a staged copy is no operation of its own.
std::optional<Op> TokenOf(ipc::Op op, ipc::Values values);
// In place of TokenOf, for a call whose operation is known and which is no copy.
void OnKnownOperation();

// Op::identity of each launch of this function, and of this executable graph: the program's values.
// It is good for this process alone; all other identities, and all shapes, are the same in every
// process.
uint32_t IdentityOfLaunch(uint64_t function);
uint32_t IdentityOfGraph(uint64_t graph);

}  // namespace shim::iterations
