// What the client packed into a launch it reads again, and a chunk is cut where the worker cuts it.
#include "shim/launch_messages.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "ipc/codec_client.h"
#include "ipc/message.h"

namespace shim {
namespace {

using ipc::HandleId;

// The program's values are the names.
class Names final : public ipc::Caller {
 public:
  bool Find(ipc::HandleKind, const void* value, HandleId* id) override {
    *id = static_cast<HandleId>(reinterpret_cast<uintptr_t>(value));
    return true;
  }
  bool FindStream(const void* value, bool, HandleId* id) override {
    return Find(ipc::HandleKind::kStream, value, id);
  }
  bool Name(ipc::HandleKind, HandleId*, void**) override { return false; }
  void Forget(ipc::HandleKind, HandleId) override {}
  bool Accepts(uint64_t, uint64_t) override { return true; }
  bool ScalarsOnDevice(ipc::HandleKind, HandleId) override { return false; }
  size_t ScalarBytes(HandleId) override { return 0; }
  bool ResultSlot(HandleId, void*, size_t, uint64_t*) override { return false; }
};

constexpr uintptr_t kFirst = static_cast<uintptr_t>(HandleId::kFirst);

class LaunchMessagesTest : public testing::Test {
 protected:
  void Append(ipc::Op op, ipc::Values values, uint32_t context) {
    const size_t at = messages_.size();
    messages_.resize(at + sizeof(ipc::MessageHeader) + ipc::RequestBytesMax(op, values));
    ipc::Writer writer(std::span<std::byte>(messages_).subspan(at + sizeof(ipc::MessageHeader)));
    ASSERT_EQ(ipc::EncodeRequest(op, values, names_, &writer).refusal, ipc::Refusal::kNone);
    ipc::MessageHeader header;
    header.bytes = static_cast<uint32_t>(sizeof header + writer.size());
    header.op = static_cast<uint16_t>(op);
    header.context = context;
    std::memcpy(&messages_[at], &header, sizeof header);
    messages_.resize(at + ipc::PaddedBytes(header.bytes));
  }
  void Launch(uintptr_t stream = 1, unsigned attributes = 0, uint32_t context = 1) {
    const ipc::LaunchAttribute attribute = {CU_LAUNCH_ATTRIBUTE_COOPERATIVE, {1, 0, 0, 0}};
    const uint64_t params[] = {7, 8, ++launches_};
    const ipc::Arguments<ipc::Op::Launch> arguments(
        reinterpret_cast<CUfunction>(kFirst + 5), 1u, 2u, 3u, 4u, 5u, 6u, 64u,
        reinterpret_cast<CUstream>(kFirst + stream), &attribute, attributes,
        static_cast<const void*>(params), static_cast<unsigned>(sizeof params));
    Append(ipc::Op::Launch, arguments.values(), context);
  }
  void Wake() {
    const ipc::Arguments<ipc::Op::EventWake> arguments(reinterpret_cast<CUevent>(kFirst));
    Append(ipc::Op::EventWake, arguments.values(), 1);
  }
  // How many launches each run has.
  std::vector<size_t> Sizes() {
    std::vector<size_t> sizes;
    for (const LaunchRun& run : LaunchRunsIn(messages_)) sizes.push_back(run.launches.size());
    return sizes;
  }
  void Launches(int count, uintptr_t stream = 1, unsigned attributes = 0, uint32_t context = 1) {
    for (int i = 0; i < count; ++i) Launch(stream, attributes, context);
  }
  using Counts = std::vector<size_t>;

  Names names_;
  std::vector<std::byte> messages_;
  uint64_t launches_ = 0;
};

TEST_F(LaunchMessagesTest, ALaunchIsReadAsItWasWritten) {
  Launch(3);
  const std::optional<LaunchMessage> launch = ReadLaunch(messages_);
  ASSERT_TRUE(launch.has_value());
  EXPECT_EQ(launch->function, static_cast<HandleId>(kFirst + 5));
  EXPECT_EQ(launch->stream, static_cast<HandleId>(kFirst + 3));
  for (unsigned i = 0; i < 3; ++i) {
    EXPECT_EQ(launch->grid[i], 1 + i);
    EXPECT_EQ(launch->block[i], 4 + i);
  }
  EXPECT_EQ(launch->attributes, 0u);
  ASSERT_EQ(launch->param_bytes, 24u);
  uint64_t params[3];
  std::memcpy(params, messages_.data() + launch->params_at, sizeof params);
  EXPECT_EQ(params[0], 7u);
  EXPECT_EQ(params[2], 1u);
  messages_.clear();
  Wake();
  EXPECT_FALSE(ReadLaunch(messages_).has_value());
}

TEST_F(LaunchMessagesTest, ARunLiesBetweenOtherMessages) {
  Wake();
  const size_t begin = messages_.size();
  Launches(3);
  const size_t end = messages_.size();
  Wake();
  Launches(2);
  Wake();
  const std::vector<LaunchRun> runs = LaunchRunsIn(messages_);
  ASSERT_EQ(runs.size(), 1u);
  EXPECT_EQ(runs[0].begin, begin);
  EXPECT_EQ(runs[0].end, end);
  EXPECT_EQ(runs[0].places[0], begin);
  EXPECT_EQ(runs[0].launches.size(), 3u);
}

TEST_F(LaunchMessagesTest, StreamsContextsAndAttributesEndARun) {
  Launches(3, 1);
  Launches(4, 2);
  EXPECT_EQ(Sizes(), (Counts{3, 4}));
  Launches(5, 2, 0, 2);
  EXPECT_EQ(Sizes(), (Counts{3, 4, 5}));
  Launches(1, 2, 1, 2);
  Launches(3, 2, 0, 2);
  EXPECT_EQ(Sizes(), (Counts{3, 4, 5, 3}));
}

}  // namespace
}  // namespace shim
