// The name by which a client and its worker know a module's bytes. The client computes it to ask
// whether the worker has the module, and the worker computes it again of the bytes that came.
// Thread safety: a pure function.
#pragma once

#include <cstddef>
#include <span>

#include "ipc/calls/laneway_calls.h"

namespace ipc {

// BLAKE2b-256, by libsodium.
ModuleHash HashOfModule(std::span<const std::byte> bytes);

}  // namespace ipc
