// The bytes of the modules that live, by content: what a rebuild loads them from.
//
// A program may free an image once it is loaded, so the bytes are copied, once for all loads of the
// same content; they go with the last log entry that needs them. Thread safety: all functions.
#pragma once

#include <memory>
#include <span>

#include "ipc/calls/laneway_calls.h"
#include "shim/rebuild/log.h"

namespace shim {

class Images {
 public:
  // Keeps the bytes as long as the result, or a later Find of the same hash, lives.
  static std::shared_ptr<const ModuleBytes> Keep(const ipc::ModuleHash& hash,
                                                 std::span<const std::byte> bytes);
  // Null when nobody keeps them.
  static std::shared_ptr<const ModuleBytes> Find(const ipc::ModuleHash& hash);
};

}  // namespace shim
