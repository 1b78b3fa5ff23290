// Dispatch by opcode: to the right function with the right C types, and what has no function.
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "ipc/codec_client.h"
#include "ipc/dispatch.h"
#include "tests/ipc/calls/fakes.h"

namespace ipc {
namespace {

struct Seen {
  CUdeviceptr to = 0;
  unsigned char value = 0;
  size_t count = 0;
} g_seen;

CUresult RecordMemset(CUdeviceptr to, unsigned char value, size_t count, CUstream) {
  g_seen = {to, value, count};
  return CUDA_ERROR_LAUNCH_TIMEOUT;
}

class DispatchTest : public testing::Test {
 protected:
  template <Op op, class... A>
  Served Dispatch(A... a) {
    const Arguments<op> args(a...);
    Writer request({reinterpret_cast<std::byte*>(request_), sizeof request_});
    EXPECT_EQ(EncodeRequest(op, args.values(), caller_, &request).refusal, Refusal::kNone);
    Writer reply(reply_);
    return DispatchUntrusted(static_cast<uint16_t>(op),
                             {reinterpret_cast<std::byte*>(request_), request.size()}, targets_,
                             session_, &reply);
  }

  FakeCaller caller_;
  FakeSession session_;
  DriverTable driver_;
  Targets targets_{&driver_, &NullCublas(), &NullCublasLt(), nullptr};
  uint64_t request_[512] = {};
  std::vector<std::byte> reply_ = std::vector<std::byte>(kBodyBytesMax);
};

TEST_F(DispatchTest, CallsTheRowsFunctionAndPassesItsResultThrough) {
  driver_.cuMemsetD8Async = &RecordMemset;
  const Served served = Dispatch<Op::cuMemsetD8Async>(CUdeviceptr{kArena + 5}, uint8_t{7},
                                                      size_t{9}, CUstream{nullptr});
  EXPECT_EQ(served.status, uint32_t{CUDA_ERROR_LAUNCH_TIMEOUT});
  EXPECT_TRUE(served.called);
  EXPECT_EQ(g_seen.to, kArena + 5);
  EXPECT_EQ(g_seen.value, 7);
  EXPECT_EQ(g_seen.count, 9u);
}

TEST_F(DispatchTest, AFunctionThatTheLibraryLacksIsNotSupported) {
  const Served served =
      Dispatch<Op::cuMemsetD8Async>(CUdeviceptr{kArena}, uint8_t{7}, size_t{9}, CUstream{nullptr});
  EXPECT_EQ(served.status, uint32_t{CUDA_ERROR_NOT_SUPPORTED});
  EXPECT_FALSE(served.called);
}

TEST_F(DispatchTest, LocalDeniedAndUnknownOpcodesAreMalformed) {
  Writer reply(reply_);
  for (const unsigned op :
       {static_cast<unsigned>(Op::cuInit), static_cast<unsigned>(Op::cuGraphicsMapResources),
        static_cast<unsigned>(Op::kDriverEnd), 0x0fffu, 0x3fffu, 0xffffu}) {
    EXPECT_EQ(DispatchUntrusted(static_cast<uint16_t>(op), {}, targets_, session_, &reply).outcome,
              Outcome::kMalformed)
        << op;
  }
}

TEST_F(DispatchTest, TablesAreArraysInOpcodeOrder) {
  EXPECT_EQ(sizeof(DriverTable), RowsOf(Library::kDriver).size() * sizeof(void*));
  EXPECT_EQ(sizeof(CublasTable), RowsOf(Library::kCublas).size() * sizeof(void*));
  EXPECT_EQ(sizeof(CublasLtTable), RowsOf(Library::kCublasLt).size() * sizeof(void*));
  driver_.cuMemsetD8Async = &RecordMemset;
  EXPECT_EQ(FunctionAt(targets_, Op::cuMemsetD8Async), reinterpret_cast<void*>(&RecordMemset));
  EXPECT_EQ(FunctionAt(targets_, Op::cuMemsetD16Async), nullptr);
  EXPECT_EQ(FunctionAt(targets_, Op::cublasSgemm_v2),
            reinterpret_cast<void*>(NullCublas().cublasSgemm_v2));
}

TEST_F(DispatchTest, ALibraryThatIsNotThereSaysSo) {
  DriverTable table;
  const absl::Status status = LoadDriver("libnosuchdriver.so.9", &table);
  EXPECT_FALSE(status.ok());
  EXPECT_NE(std::string(status.message()).find("libnosuchdriver.so.9"), std::string::npos);
}

}  // namespace
}  // namespace ipc
