// A session that holds one extent and answers every message that wants a reply with an empty one:
// the process side's tests need no device.
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "daemon/worker/session.h"

namespace worker {
namespace {

constexpr int64_t kLookUpUs = 50'000;

class FakeSession : public Session {
 public:
  FakeSession(SessionSetup setup, ExtentSource* extents, const Extent& extent)
      : setup_(std::move(setup)), extents_(extents), extent_(extent) {}
  ~FakeSession() override {
    extents_->Free(extent_);
    if (setup_.pinned_fd >= 0) close(setup_.pinned_fd);
  }

  void Run() override {
    while (!stop_.load() && setup_.file.page()->loss.load() == 0) {
      const std::span<const std::byte> message =
          setup_.channel.receiver->NextUntrusted(20, kLookUpUs);
      if (setup_.channel.receiver->broken()) {
        ipc::MarkLost(setup_.file.page(), CUDA_ERROR_MPS_RPC_FAILURE, "malformed message");
        return;
      }
      if (!message.empty()) Answer(message);
    }
  }

  void Stop() override { stop_.store(true); }
  void Release() override {
    released_.store(true);
    stop_.store(true);
  }
  bool released() const override { return released_.load(); }
  SessionSnapshot Snapshot() const override { return {ops_.load(), 0, 0}; }
  bool quiet() const override { return ops_.load() == 0; }

 private:
  void Answer(std::span<const std::byte> message) {
    ipc::MessageHeader header;
    std::memcpy(&header, message.data(), sizeof header);
    setup_.file.page()->counts.ops_received.store(++ops_);
    if ((header.flags & ipc::kWantsReply) == 0) return;
    header.flags = ipc::kIsReply;
    header.bytes = sizeof header;
    const std::span<std::byte> room = setup_.channel.sender->Reserve(sizeof header, 1'000'000);
    if (room.empty()) return;
    std::memcpy(room.data(), &header, sizeof header);
    setup_.channel.sender->Commit(sizeof header);
  }

  SessionSetup setup_;
  ExtentSource* const extents_;
  const Extent extent_;
  std::atomic<bool> stop_{false};
  std::atomic<bool> released_{false};
  std::atomic<uint64_t> ops_{0};
};

}  // namespace

std::unique_ptr<Session> Session::Create(SessionSetup setup, const Environment& environment,
                                         std::string* error) {
  Extent extent;
  ExtentRecord wanted;
  wanted.owner = {OwnerKind::kSession, setup.session_id};
  wanted.bytes = ipc::limits::kExtentBytesMin;
  const CUresult result = environment.extents->Create(wanted, &extent);
  if (result != CUDA_SUCCESS) {
    *error = "no memory for the session: " + std::to_string(result);
    return nullptr;
  }
  return std::make_unique<FakeSession>(std::move(setup), environment.extents, extent);
}

}  // namespace worker
