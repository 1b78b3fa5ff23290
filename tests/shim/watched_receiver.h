// Stands before a worker's session: it counts the messages that the session takes, by their call,
// and can make the worker hang. Thread safety: counts() and Hang() from any thread.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <string>

#include "base/mutex.h"
#include "ipc/channel.h"

namespace shim_test {

class WatchedReceiver : public ipc::Receiver {
 public:
  explicit WatchedReceiver(std::unique_ptr<ipc::Receiver> from) : from_(std::move(from)) {}

  std::map<std::string, int> counts() EXCLUDES(mutex_);
  // From now on the session gets no message.
  void Hang() { hangs_.store(true); }

  // --- ipc::Receiver
  std::span<const std::byte> NextUntrusted(int64_t spin_us, int64_t timeout_us) override;
  std::span<const std::byte> PeekUntrusted(int64_t spin_us, int64_t timeout_us) override;
  bool Pending() override { return !hangs_.load() && from_->Pending(); }
  void SetInterrupt(const std::atomic<uint32_t>* flag) override { from_->SetInterrupt(flag); }
  bool broken() const override { return from_->broken(); }

 private:
  void Count(std::span<const std::byte> message) EXCLUDES(mutex_);

  const std::unique_ptr<ipc::Receiver> from_;
  std::atomic<bool> hangs_{false};
  base::Mutex mutex_;
  std::map<std::string, int> counts_ GUARDED_BY(mutex_);
};

}  // namespace shim_test
