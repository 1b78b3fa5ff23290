// Control messages, as each receiver decodes them: packets from a peer that may be of another
// build, or no Laneway at all.
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "ipc/control.h"

namespace {

namespace wire = ipc::control;

template <class... Directions>
void DecodeAs(std::span<const std::byte> bytes) {
  (wire::DecodeControlUntrusted<Directions>(bytes), ...);
}

void DecodeInEachDirection(std::span<const std::byte> bytes) {
  DecodeAs<wire::DaemonToWorker, wire::WorkerToDaemon, wire::DaemonToProgram, wire::ProgramToDaemon,
           wire::ToKeeper, wire::WorkerToKeeper, wire::KeeperToDaemon, wire::KeeperToWorker>(bytes);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::vector<std::byte> bytes(size);
  if (size != 0) std::memcpy(bytes.data(), data, size);
  DecodeInEachDirection(bytes);
  wire::ControlHeader header;
  if (size < sizeof header) return 0;
  // With the header of this version and length, so that the corpus reaches the bodies after the
  // next change of version, too.
  const wire::ControlHeader current;
  std::memcpy(&header, data, sizeof header);
  header.magic = current.magic;
  header.protocol_version = current.protocol_version;
  header.bytes = static_cast<uint32_t>(size);
  std::memcpy(bytes.data(), &header, sizeof header);
  DecodeInEachDirection(bytes);
  return 0;
}
