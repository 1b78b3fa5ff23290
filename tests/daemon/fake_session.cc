// A session that answers every message that wants a reply with an empty one: the process side's tests need
// no device.
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <utility>

#include "daemon/worker/session.h"

namespace worker {
namespace {

constexpr int64_t kLookUpUs = 50'000;

class FakeSession : public Session {
 public:
  explicit FakeSession(SessionSetup setup) : setup_(std::move(setup)) {}
  ~FakeSession() override {
    if (setup_.pinned_fd >= 0) close(setup_.pinned_fd);
  }

  void Run() override {
    while (!stop_.load() && setup_.file.page()->loss.load() == 0) {
      const std::span<const std::byte> message = setup_.channel.receiver->NextUntrusted(20, kLookUpUs);
      if (setup_.channel.receiver->broken()) {
        ipc::MarkLost(setup_.file.page(), CUDA_ERROR_MPS_RPC_FAILURE, "malformed message");
        return;
      }
      if (!message.empty()) Answer(message);
    }
  }

  void Stop() override { stop_.store(true); }
  SessionSnapshot Snapshot() const override { return {ops_.load(), 0, 0}; }

 private:
  void Answer(std::span<const std::byte> message) {
    ipc::MessageHeader header;
    std::memcpy(&header, message.data(), sizeof header);
    setup_.file.page()->ops_received.store(++ops_);
    if ((header.flags & ipc::kWantsReply) == 0) return;
    header.flags = ipc::kIsReply;
    header.bytes = sizeof header;
    const std::span<std::byte> room = setup_.channel.sender->Reserve(sizeof header, 1'000'000);
    if (room.empty()) return;
    std::memcpy(room.data(), &header, sizeof header);
    setup_.channel.sender->Commit(sizeof header);
  }

  SessionSetup setup_;
  std::atomic<bool> stop_{false};
  std::atomic<uint64_t> ops_{0};
};

}  // namespace

std::unique_ptr<Session> Session::Create(SessionSetup setup, const Environment& environment,
                                         std::string* error) {
  return std::make_unique<FakeSession>(std::move(setup));
}

}  // namespace worker
