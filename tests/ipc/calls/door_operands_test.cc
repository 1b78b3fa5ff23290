// What the worker's door refuses of library calls: operands that reach beyond what is the
// session's.
#include <vector>

#include "gtest/gtest.h"
#include "ipc/codec_client.h"
#include "ipc/codec_worker.h"
#include "tests/ipc/calls/fakes.h"

namespace ipc {
namespace {

cublasHandle_t HandleNamed(uint32_t id) {
  return static_cast<cublasHandle_t>(ProgramValue(HandleKind::kBlas, static_cast<HandleId>(id)));
}

uint32_t Succeed(void*, const Slot*) { return 0; }

class DoorOperandsTest : public testing::Test {
 protected:
  template <Op op>
  Refusal Encode(const Arguments<op>& args) {
    Writer writer({reinterpret_cast<std::byte*>(request_), sizeof request_});
    const Encoded encoded = EncodeRequest(op, args.values(), caller_, &writer);
    bytes_ = writer.size();
    return encoded.refusal;
  }
  Served Serve(Op op) {
    Writer reply(reply_);
    int target = 0;
    return ServeUntrusted(op, {reinterpret_cast<std::byte*>(request_), bytes_}, &Succeed, &target,
                          session_, &reply);
  }

  FakeCaller caller_;
  FakeSession session_;
  uint64_t request_[kBodyBytesMax / 8] = {};
  size_t bytes_ = 0;
  std::vector<std::byte> reply_ = std::vector<std::byte>(kBodyBytesMax);
};

TEST_F(DoorOperandsTest, OperandsOfALibraryCountToTheirEnds) {
  const auto copy = [&](int64_t n, int64_t step, uint64_t to) {
    EXPECT_EQ(Encode<Op::cublasScopy_v2_64>(Arguments<Op::cublasScopy_v2_64>(
                  HandleNamed(7), n, reinterpret_cast<const float*>(kArena), step,
                  reinterpret_cast<float*>(to), int64_t{1})),
              Refusal::kNone);
    return Serve(Op::cublasScopy_v2_64);
  };
  const int64_t whole = kArenaBytes / 4;
  EXPECT_TRUE(copy(whole, 1, kArena).called);
  EXPECT_TRUE(copy(2, whole - 1, kArena).called);
  EXPECT_TRUE(copy(2, 1 - whole, kArena).called);
  const Served served = copy(2, whole, kArena);  // another's word
  EXPECT_FALSE(served.called);
  EXPECT_EQ(served.refusal, Refusal::kBadAddress);
  EXPECT_EQ(served.status, uint32_t{CUBLAS_STATUS_INVALID_VALUE});
  EXPECT_FALSE(copy(2, -whole, kArena).called);
  EXPECT_FALSE(copy(2, 1, kArena + kArenaBytes - 4).called);
  EXPECT_FALSE(copy(INT64_MAX, INT64_MAX, kArena).called);
  EXPECT_TRUE(copy(0, whole, kArena).called);  // nothing is touched
}

TEST_F(DoorOperandsTest, AScalarOnTheDeviceIsThereAsAWhole) {
  caller_.scalars_on_device = true;
  const auto scale = [&](uint64_t alpha) {
    EXPECT_EQ(Encode<Op::cublasDscal_v2>(Arguments<Op::cublasDscal_v2>(
                  HandleNamed(7), 4, reinterpret_cast<const double*>(alpha),
                  reinterpret_cast<double*>(kArena), 1)),
              Refusal::kNone);
    return Serve(Op::cublasDscal_v2).called;
  };
  EXPECT_TRUE(scale(kArena + kArenaBytes - 8));
  EXPECT_FALSE(scale(kArena + kArenaBytes - 4));
}

}  // namespace
}  // namespace ipc
