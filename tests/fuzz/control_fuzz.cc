// Control messages, as each receiver decodes them: packets from a peer that may be of another
// build, or no Laneway at all.
#include <cstdint>
#include <span>

#include "ipc/control.h"

namespace {

template <class... Directions>
void DecodeAll(std::span<const std::byte> bytes) {
  (ipc::control::DecodeControlUntrusted<Directions>(bytes), ...);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace wire = ipc::control;
  DecodeAll<wire::DaemonToWorker, wire::WorkerToDaemon, wire::DaemonToProgram,
            wire::ProgramToDaemon, wire::ToKeeper, wire::WorkerToKeeper, wire::KeeperToDaemon,
            wire::KeeperToWorker>(std::as_bytes(std::span(data, size)));
  return 0;
}
