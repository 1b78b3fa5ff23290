// Ring bytes: whatever a tenant writes, the worker's session decodes it, refuses what is not its
// own, and lives. An input is a run of messages: u16 opcode and two flags, u16 length, bytes of the
// body.
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <unistd.h>

#include "daemon/worker/jobs.h"
#include "daemon/worker/lanes.h"
#include "daemon/worker/session.h"
#include "tests/daemon/worker/recording_driver.h"

namespace worker {
namespace {

constexpr uint16_t kOpMask = 0x31ff;  // most numbers that are no opcode teach nothing
constexpr uint16_t kWantsReply = 0x8000;
constexpr uint16_t kIntoCapture = 0x4000;

// Gives the input's messages, then stops the session.
class InputReceiver : public ipc::Receiver {
 public:
  explicit InputReceiver(std::span<const uint8_t> input) : input_(input) {}
  std::span<const std::byte> NextUntrusted(int64_t, int64_t) override {
    uint16_t head[2];
    if (input_.size() < sizeof head) {
      session->Stop();
      return {};
    }
    std::memcpy(head, input_.data(), sizeof head);
    input_ = input_.subspan(sizeof head);
    const size_t body = std::min<size_t>(head[1], input_.size());
    ipc::MessageHeader header;
    header.bytes = static_cast<uint32_t>(sizeof header + body);
    header.op = head[0] & kOpMask;
    header.flags = head[0] & kWantsReply ? ipc::kWantsReply : 0;
    header.context = head[0] & kIntoCapture ? 1 | ipc::kIntoCapture : 1;
    message_.resize(header.bytes);
    std::memcpy(message_.data(), &header, sizeof header);
    if (body != 0) std::memcpy(message_.data() + sizeof header, input_.data(), body);
    input_ = input_.subspan(body);
    return message_;
  }
  std::span<const std::byte> PeekUntrusted(int64_t, int64_t) override { return {}; }
  bool Pending() override { return false; }
  bool broken() const override { return false; }
  Session* session = nullptr;

 private:
  std::span<const uint8_t> input_;
  std::vector<std::byte> message_;
};

class DroppingSender : public ipc::Sender {
 public:
  std::span<std::byte> Reserve(size_t bytes, int64_t) override {
    room_.resize(bytes);
    return room_;
  }
  void Commit(size_t) override {}

 private:
  std::vector<std::byte> room_;
};

class IgnorePoison : public PoisonSink {
 public:
  void OnPoisoned(uint64_t, CUresult, const std::string&) override {}
};

void RunSession(std::span<const uint8_t> input) {
  FreshRecording().capacity_bytes = 64 << 20;
  IgnorePoison poison;
  Environment environment = RecordingEnvironment();
  environment.cublas = &ipc::NullCublas();
  environment.cublaslt = &ipc::NullCublasLt();
  environment.contexts = {reinterpret_cast<CUcontext>(1)};
  environment.poison = &poison;
  LaneTable lanes(&environment);
  environment.lanes = &lanes;
  JobBooks jobs;
  environment.jobs = &jobs;
  const absl::StatusOr<int> fd = ipc::SessionFile::Create(1, 0);
  if (!fd.ok()) return;
  absl::StatusOr<ipc::SessionFile> file = ipc::SessionFile::Map(*fd);
  close(*fd);
  if (!file.ok()) return;
  std::unique_ptr<InputReceiver> receiver = std::make_unique<InputReceiver>(input);
  InputReceiver* const feed = receiver.get();
  SessionSetup setup{.session_id = 1,
                     .slot = 0,
                     .file = std::move(*file),
                     .channel = {std::make_unique<DroppingSender>(), std::move(receiver)}};
  std::string error;
  const std::unique_ptr<Session> session = Session::Create(std::move(setup), environment, &error);
  if (session == nullptr) return;
  feed->session = session.get();
  session->Run();
}

}  // namespace
}  // namespace worker

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  worker::RunSession({data, size});
  return 0;
}
