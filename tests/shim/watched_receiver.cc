#include "tests/shim/watched_receiver.h"

#include <cstring>
#include <optional>

#include "ipc/calls.h"

namespace shim_test {

std::map<std::string, int> WatchedReceiver::counts() {
  const base::MutexLock lock(&mutex_);
  return counts_;
}

void WatchedReceiver::Count(std::span<const std::byte> message) {
  ipc::MessageHeader header;
  std::memcpy(&header, message.data(), sizeof header);
  const std::optional<ipc::Op> op = ipc::OpFromUntrusted(header.op);
  if (!op.has_value()) return;
  const base::MutexLock lock(&mutex_);
  ++counts_[std::string(ipc::RowOf(*op).name)];
}

// A message that comes while the worker begins to hang is lost with it.
std::span<const std::byte> WatchedReceiver::NextUntrusted(int64_t spin_us, int64_t timeout_us) {
  const std::span<const std::byte> message = from_->NextUntrusted(spin_us, timeout_us);
  if (message.empty() || hangs_.load()) return {};
  Count(message);
  return message;
}

std::span<const std::byte> WatchedReceiver::PeekUntrusted(int64_t spin_us, int64_t timeout_us) {
  const std::span<const std::byte> message = from_->PeekUntrusted(spin_us, timeout_us);
  return hangs_.load() ? std::span<const std::byte>() : message;
}

}  // namespace shim_test
