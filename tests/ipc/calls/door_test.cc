// What the door refuses, on either side of it.
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "ipc/codec_client.h"
#include "ipc/codec_worker.h"
#include "tests/ipc/calls/fakes.h"

namespace ipc {
namespace {

CUstream StreamNamed(uint32_t id) {
  return static_cast<CUstream>(ProgramValue(HandleKind::kStream, static_cast<HandleId>(id)));
}
CUevent EventNamed(uint32_t id) {
  return static_cast<CUevent>(ProgramValue(HandleKind::kEvent, static_cast<HandleId>(id)));
}
cublasHandle_t BlasNamed(uint32_t id) {
  return static_cast<cublasHandle_t>(ProgramValue(HandleKind::kBlas, static_cast<HandleId>(id)));
}

struct Called {
  int calls = 0;
  uint32_t status = 0;
  std::vector<Slot> slots;
};
uint32_t Record(void* target, const Slot* slots) {
  Called* called = static_cast<Called*>(target);
  ++called->calls;
  called->slots.assign(slots, slots + kParamsMax);
  return called->status;
}

class DoorTest : public testing::Test {
 protected:
  template <Op op>
  Refusal Encode(const Arguments<op>& args) {
    Writer writer({reinterpret_cast<std::byte*>(request_), sizeof request_});
    encoded_ = EncodeRequest(op, args.values(), caller_, &writer);
    bytes_ = writer.size();
    return encoded_.refusal;
  }
  Served Serve(Op op) {
    Writer reply(reply_);
    const Served served = ServeUntrusted(op, {reinterpret_cast<std::byte*>(request_), bytes_},
                                         &Record, &called_, session_, &reply);
    reply_bytes_ = reply.size();
    return served;
  }
  template <Op op>
  bool Take(const Arguments<op>& args, uint32_t* status) {
    return TakeReply(op, args.values(), encoded_, {reply_.data(), reply_bytes_}, caller_, status);
  }
  uint8_t* RequestByte(size_t at) { return reinterpret_cast<uint8_t*>(request_) + at; }

  FakeCaller caller_;
  FakeSession session_;
  Called called_;
  Encoded encoded_;
  uint64_t request_[kBodyBytesMax / 8] = {};
  size_t bytes_ = 0;
  std::vector<std::byte> reply_ = std::vector<std::byte>(kBodyBytesMax);
  size_t reply_bytes_ = 0;
};

TEST_F(DoorTest, ClientRefusesForeignHandlesAndAddresses) {
  EXPECT_EQ(Encode<Op::cuStreamWaitEvent>(Arguments<Op::cuStreamWaitEvent>(
                reinterpret_cast<CUstream>(uint64_t{0x1234}), EventNamed(7), 0u)),
            Refusal::kBadHandle);
  EXPECT_EQ(Encode<Op::cuMemsetD8Async>(
                Arguments<Op::cuMemsetD8Async>(kArena + 8, uint8_t{1}, kArenaBytes, nullptr)),
            Refusal::kBadAddress);
  EXPECT_EQ(Encode<Op::cuMemsetD8Async>(
                Arguments<Op::cuMemsetD8Async>(kArena + 8, uint8_t{1}, size_t(-1), nullptr)),
            Refusal::kBadAddress);
  EXPECT_EQ(Encode<Op::cuMemsetD8Async>(
                Arguments<Op::cuMemsetD8Async>(kArena, uint8_t{1}, kArenaBytes, nullptr)),
            Refusal::kNone);
  EXPECT_EQ(StatusOf(Library::kDriver, Refusal::kBadHandle), uint32_t{CUDA_ERROR_INVALID_HANDLE});
  EXPECT_EQ(StatusOf(Library::kCublas, Refusal::kBadHandle),
            uint32_t{CUBLAS_STATUS_NOT_INITIALIZED});
}

TEST_F(DoorTest, WorkerTrustsNoAddressThatTheClientAccepted) {
  const Arguments<Op::cuMemsetD32Async> args(kArena, 1u, kArenaBytes / 4, nullptr);
  ASSERT_EQ(Encode<Op::cuMemsetD32Async>(args), Refusal::kNone);
  EXPECT_EQ(Serve(Op::cuMemsetD32Async).status, 0u);
  ++*RequestByte(12);  // the count: address 8, value 4, count
  const Served served = Serve(Op::cuMemsetD32Async);
  EXPECT_EQ(served.outcome, Outcome::kReplied);
  EXPECT_FALSE(served.called);
  EXPECT_EQ(served.status, uint32_t{CUDA_ERROR_INVALID_VALUE});
  *RequestByte(19) = 0x80;  // a count near 2^63: its product with 4 must not wrap into range
  EXPECT_EQ(Serve(Op::cuMemsetD32Async).status, uint32_t{CUDA_ERROR_INVALID_VALUE});
  EXPECT_EQ(called_.calls, 1);
}

TEST_F(DoorTest, PitchedExtentEndsWithTheLastRow) {
  const size_t pitch = kArenaBytes / 4;
  EXPECT_EQ(Encode<Op::cuMemsetD2D8Async>(Arguments<Op::cuMemsetD2D8Async>(
                kArena + pitch - 16, pitch, uint8_t{1}, size_t{16}, size_t{4}, nullptr)),
            Refusal::kNone);
  EXPECT_EQ(Encode<Op::cuMemsetD2D8Async>(Arguments<Op::cuMemsetD2D8Async>(
                kArena + pitch - 16, pitch, uint8_t{1}, size_t{17}, size_t{4}, nullptr)),
            Refusal::kBadAddress);
  EXPECT_EQ(Encode<Op::cuMemsetD2D8Async>(Arguments<Op::cuMemsetD2D8Async>(
                kArena, size_t(-1), uint8_t{1}, size_t{16}, size_t(-1), nullptr)),
            Refusal::kBadAddress);
}

TEST_F(DoorTest, StaleNamesAreRefusedWithoutACall) {
  ASSERT_EQ(Encode<Op::cuStreamWaitEvent>(
                Arguments<Op::cuStreamWaitEvent>(StreamNamed(5), EventNamed(7), 0u)),
            Refusal::kNone);
  session_.refuse_handles = true;
  const Served served = Serve(Op::cuStreamWaitEvent);
  EXPECT_EQ(served.status, uint32_t{CUDA_ERROR_INVALID_HANDLE});
  EXPECT_FALSE(served.called);
  EXPECT_EQ(called_.calls, 0);
}

TEST_F(DoorTest, DefaultStreamsHaveNamesAndCannotBeDestroyed) {
  ASSERT_EQ(
      Encode<Op::cuStreamWaitEvent>(Arguments<Op::cuStreamWaitEvent>(nullptr, EventNamed(7), 0u)),
      Refusal::kNone);
  Serve(Op::cuStreamWaitEvent);
  EXPECT_EQ(called_.slots[0].As<void*>(),
            DriverValue(HandleKind::kStream, HandleId::kLegacyStream));
  ASSERT_EQ(Encode<Op::cuStreamWaitEvent_ptsz>(
                Arguments<Op::cuStreamWaitEvent_ptsz>(nullptr, EventNamed(7), 0u)),
            Refusal::kNone);
  Serve(Op::cuStreamWaitEvent_ptsz);
  EXPECT_EQ(called_.slots[0].As<void*>(),
            DriverValue(HandleKind::kStream, HandleId::kPerThreadStream));

  EXPECT_EQ(Encode<Op::StreamDestroy>(Arguments<Op::StreamDestroy>(nullptr)), Refusal::kBadHandle);
  ASSERT_EQ(Encode<Op::StreamDestroy>(Arguments<Op::StreamDestroy>(StreamNamed(9))),
            Refusal::kNone);
  *RequestByte(0) = 1;
  EXPECT_EQ(Serve(Op::StreamDestroy).status, uint32_t{CUDA_ERROR_INVALID_HANDLE});
  EXPECT_TRUE(session_.released.empty());
}

// The driver's null stream orders the work of every session of its context.
TEST_F(DoorTest, NobodyNamesTheDriversNullStream) {
  ASSERT_EQ(Encode<Op::cuStreamWaitEvent>(
                Arguments<Op::cuStreamWaitEvent>(StreamNamed(5), EventNamed(7), 0u)),
            Refusal::kNone);
  ASSERT_EQ(Serve(Op::cuStreamWaitEvent).status, 0u);
  for (size_t i = 0; i < sizeof(HandleId); ++i) *RequestByte(i) = 0;  // the stream's name
  const Served served = Serve(Op::cuStreamWaitEvent);
  EXPECT_FALSE(served.called);
  EXPECT_EQ(served.status, uint32_t{CUDA_ERROR_INVALID_HANDLE});
  EXPECT_EQ(called_.calls, 1);
}

TEST_F(DoorTest, AFailedCreationGivesTheNameBack) {
  CUevent event = nullptr;
  const Arguments<Op::cuEventCreate> args(&event, 0u);
  ASSERT_EQ(Encode<Op::cuEventCreate>(args), Refusal::kNone);
  EXPECT_EQ(event, nullptr);
  called_.status = CUDA_ERROR_OUT_OF_MEMORY;
  EXPECT_EQ(Serve(Op::cuEventCreate).status, uint32_t{CUDA_ERROR_OUT_OF_MEMORY});
  EXPECT_TRUE(session_.bound.empty());
  uint32_t status = 0;
  ASSERT_TRUE(Take<Op::cuEventCreate>(args, &status));
  EXPECT_EQ(status, uint32_t{CUDA_ERROR_OUT_OF_MEMORY});
  EXPECT_EQ(event, nullptr);
  EXPECT_TRUE(caller_.named.empty());
}

TEST_F(DoorTest, ANameInUseOrOutOfRangeIsRefused) {
  CUevent event = nullptr;
  const Arguments<Op::cuEventCreate> args(&event, 0u);
  ASSERT_EQ(Encode<Op::cuEventCreate>(args), Refusal::kNone);
  EXPECT_EQ(Serve(Op::cuEventCreate).status, 0u);
  EXPECT_EQ(Serve(Op::cuEventCreate).status, uint32_t{CUDA_ERROR_INVALID_HANDLE});
  *RequestByte(3) = 0x7f;
  EXPECT_EQ(Serve(Op::cuEventCreate).status, uint32_t{CUDA_ERROR_INVALID_HANDLE});
  EXPECT_EQ(called_.calls, 1);
}

TEST_F(DoorTest, PointerModeFollowsTheScalars) {
  const float alpha = 2, beta = 3;
  const float* a = reinterpret_cast<const float*>(kArena);
  float* c = reinterpret_cast<float*>(kArena + 4096);
  const Arguments<Op::cublasSgemm_v2> args(BlasNamed(4), CUBLAS_OP_N, CUBLAS_OP_T, 8, 8, 8, &alpha,
                                           a, 8, a, 8, &beta, c, 8);
  session_.device_mode = true;
  ASSERT_EQ(Encode<Op::cublasSgemm_v2>(args), Refusal::kNone);
  EXPECT_EQ(Serve(Op::cublasSgemm_v2).status, 0u);
  EXPECT_FALSE(session_.device_mode);
  const size_t alpha_tag = 4 + 5 * 4, beta_tag = alpha_tag + 17 + 8 + 4 + 8 + 4;
  ASSERT_EQ(*RequestByte(beta_tag), static_cast<uint8_t>(ScalarTag::kValue));
  *RequestByte(beta_tag) = static_cast<uint8_t>(ScalarTag::kDevice);  // beta's value as an address
  EXPECT_NE(Serve(Op::cublasSgemm_v2).status, 0u);
  const uint64_t address = kArena;
  std::memcpy(RequestByte(beta_tag + 1), &address,
              sizeof address);  // a good one, but alpha is a value
  EXPECT_EQ(Serve(Op::cublasSgemm_v2).outcome, Outcome::kMalformed);
  *RequestByte(alpha_tag) = 9;
  EXPECT_EQ(Serve(Op::cublasSgemm_v2).outcome, Outcome::kMalformed);
  EXPECT_EQ(called_.calls, 1);
}

TEST_F(DoorTest, ResultsGoToDeviceMemoryUnderEitherMode) {
  float result = 0;
  const float* x = reinterpret_cast<const float*>(kArena);
  const Arguments<Op::cublasSdot_v2> host(BlasNamed(4), 8, x, 1, x, 1, &result);
  ASSERT_EQ(Encode<Op::cublasSdot_v2>(host), Refusal::kNone);
  EXPECT_TRUE(encoded_.results_on_host);
  EXPECT_EQ(Serve(Op::cublasSdot_v2).status, 0u);
  EXPECT_TRUE(session_.device_mode);
  EXPECT_EQ(called_.slots[6].As<uint64_t>(), kArena + 64);
  caller_.scalars_on_device = true;
  EXPECT_EQ(Encode<Op::cublasSdot_v2>(host), Refusal::kBadAddress);
}

TEST_F(DoorTest, AttributesThatAreAddressesAreChecked) {
  const cublasLtMatmulDesc_t desc = static_cast<cublasLtMatmulDesc_t>(
      ProgramValue(HandleKind::kLtMatmulDesc, static_cast<HandleId>(3)));
  const auto refusal = [&](cublasLtMatmulDescAttributes_t attribute, uint64_t value) {
    return Encode<Op::cublasLtMatmulDescSetAttribute>(
        Arguments<Op::cublasLtMatmulDescSetAttribute>(desc, attribute, &value, sizeof value));
  };
  EXPECT_EQ(refusal(CUBLASLT_MATMUL_DESC_BIAS_POINTER, kArena), Refusal::kNone);
  EXPECT_EQ(Serve(Op::cublasLtMatmulDescSetAttribute).status, 0u);
  EXPECT_EQ(refusal(CUBLASLT_MATMUL_DESC_BIAS_POINTER, 4096), Refusal::kBadAddress);
  EXPECT_EQ(refusal(CUBLASLT_MATMUL_DESC_EMULATION_DESCRIPTOR, 4096), Refusal::kNotSupported);
  ASSERT_EQ(refusal(CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE, 4096), Refusal::kNone);
  *RequestByte(4) = CUBLASLT_MATMUL_DESC_BIAS_POINTER;
  EXPECT_EQ(Serve(Op::cublasLtMatmulDescSetAttribute).status,
            uint32_t{CUBLAS_STATUS_INVALID_VALUE});
  *RequestByte(4) = CUBLASLT_MATMUL_DESC_EMULATION_DESCRIPTOR;
  EXPECT_EQ(Serve(Op::cublasLtMatmulDescSetAttribute).status,
            uint32_t{CUBLAS_STATUS_INVALID_VALUE});
  EXPECT_EQ(called_.calls, 1);
}

TEST_F(DoorTest, TextMustEndWithItsOnlyNul) {
  const CUmodule module =
      static_cast<CUmodule>(ProgramValue(HandleKind::kModule, static_cast<HandleId>(3)));
  CUdeviceptr address = 0;
  size_t size = 0;
  const Arguments<Op::GetGlobal> args(&address, &size, module, "weights");
  ASSERT_EQ(Encode<Op::GetGlobal>(args), Refusal::kNone);
  EXPECT_EQ(Serve(Op::GetGlobal).outcome, Outcome::kReplied);
  *RequestByte(bytes_ - 1) = 'x';
  EXPECT_EQ(Serve(Op::GetGlobal).outcome, Outcome::kMalformed);
  *RequestByte(bytes_ - 1) = 0;
  *RequestByte(bytes_ - 4) = 0;
  EXPECT_EQ(Serve(Op::GetGlobal).outcome, Outcome::kMalformed);
}

TEST_F(DoorTest, LogsComeBackWithAFailure) {
  CUmodule module = nullptr;
  ModuleHash hash;
  char info[16] = "", error[16] = "before";
  const Arguments<Op::LoadModule> args(&module, &hash, nullptr, nullptr, 0u, nullptr, 0u, error,
                                       unsigned{sizeof error});
  ASSERT_EQ(Encode<Op::LoadModule>(args), Refusal::kNone);
  EXPECT_EQ(Serve(Op::LoadModule).status, 0u);
  std::memcpy(called_.slots[7].As<char*>(), "line 3", 7);  // as the driver would have, in scratch
  Writer reply(reply_);
  const Slot* slots = called_.slots.data();
  const void* values[kParamsMax];
  for (size_t i = 0; i < kParamsMax; ++i) values[i] = slots[i].bytes;
  EncodeReply(Op::LoadModule, CUDA_ERROR_INVALID_PTX, values, &reply);
  reply_bytes_ = reply.size();
  uint32_t status = 0;
  ASSERT_TRUE(Take<Op::LoadModule>(args, &status));
  EXPECT_EQ(status, uint32_t{CUDA_ERROR_INVALID_PTX});
  EXPECT_STREQ(error, "line 3");
  EXPECT_STREQ(info, "");
  EXPECT_EQ(module, nullptr);
}

TEST_F(DoorTest, ARefusalAtTheDoorBringsNoLog) {
  CUmodule module = nullptr;
  ModuleHash hash;
  char error[16] = "before";
  const Arguments<Op::LoadModule> args(&module, &hash, nullptr, nullptr, 0u, nullptr, 0u, error,
                                       unsigned{sizeof error});
  ASSERT_EQ(Encode<Op::LoadModule>(args), Refusal::kNone);
  *RequestByte(3) = 0x7f;  // a name that no client may give
  EXPECT_FALSE(Serve(Op::LoadModule).called);
  uint32_t status = 0;
  ASSERT_TRUE(Take<Op::LoadModule>(args, &status));
  EXPECT_EQ(status, uint32_t{CUDA_ERROR_INVALID_HANDLE});
  EXPECT_STREQ(error, "before");
}

TEST_F(DoorTest, PresenceIsZeroOrOne) {
  uint64_t echo = 0;
  ASSERT_EQ(Encode<Op::Ping>(Arguments<Op::Ping>(7, &echo)), Refusal::kNone);
  EXPECT_EQ(Serve(Op::Ping).outcome, Outcome::kReplied);
  *RequestByte(8) = 2;
  EXPECT_EQ(Serve(Op::Ping).outcome, Outcome::kMalformed);
}

// The worker's own functions look no pointer in the mouth; the driver's judge theirs.
TEST_F(DoorTest, OwnCallsHaveNoNullPointersOrHandles) {
  uint64_t echo = 0;
  EXPECT_EQ(Encode<Op::Ping>(Arguments<Op::Ping>(7, nullptr)), Refusal::kBadValue);
  ASSERT_EQ(Encode<Op::Ping>(Arguments<Op::Ping>(7, &echo)), Refusal::kNone);
  *RequestByte(8) = 0;
  EXPECT_EQ(Serve(Op::Ping).outcome, Outcome::kMalformed);

  const CUmodule module =
      static_cast<CUmodule>(ProgramValue(HandleKind::kModule, static_cast<HandleId>(3)));
  EXPECT_EQ(Encode<Op::UnloadModule>(Arguments<Op::UnloadModule>(nullptr)), Refusal::kBadHandle);
  ASSERT_EQ(Encode<Op::UnloadModule>(Arguments<Op::UnloadModule>(module)), Refusal::kNone);
  *RequestByte(0) = 0;
  EXPECT_EQ(Serve(Op::UnloadModule).outcome, Outcome::kMalformed);
  EXPECT_EQ(called_.calls, 0);
  ASSERT_EQ(Encode<Op::cuEventElapsedTime_v2>(
                Arguments<Op::cuEventElapsedTime_v2>(nullptr, nullptr, EventNamed(3))),
            Refusal::kNone);
  EXPECT_TRUE(Serve(Op::cuEventElapsedTime_v2).called);
}

TEST_F(DoorTest, AReplyEndsWhereItsRowEnds) {
  uint64_t echo = 0;
  const Arguments<Op::Ping> args(7, &echo);
  ASSERT_EQ(Encode<Op::Ping>(args), Refusal::kNone);
  Serve(Op::Ping);
  uint32_t status = 1;
  EXPECT_TRUE(Take<Op::Ping>(args, &status));
  ++reply_bytes_;
  EXPECT_FALSE(Take<Op::Ping>(args, &status));
}

TEST_F(DoorTest, WhatTheCalleeLeavesAloneComesBackAsZeros) {
  for (std::byte& byte : session_.Scratch()) byte = std::byte{0x5a};
  uint64_t echo = 1;
  const Arguments<Op::Ping> args(7, &echo);
  ASSERT_EQ(Encode<Op::Ping>(args), Refusal::kNone);
  Serve(Op::Ping);
  uint32_t status = 1;
  ASSERT_TRUE(Take<Op::Ping>(args, &status));
  EXPECT_EQ(echo, 0u);
}

TEST_F(DoorTest, ACallWhoseReplyCannotFitIsNotMade) {
  const CUmodule module =
      static_cast<CUmodule>(ProgramValue(HandleKind::kModule, static_cast<HandleId>(3)));
  unsigned count = 0;
  std::vector<char> names(kBodyBytesMax);
  const auto called = [&](size_t bytes) {
    EXPECT_EQ(Encode<Op::FunctionNames>(Arguments<Op::FunctionNames>(module, &count, names.data(),
                                                                     static_cast<unsigned>(bytes))),
              Refusal::kNone);
    return Serve(Op::FunctionNames).called;
  };
  EXPECT_TRUE(called(kBodyBytesMax - 8192));
  EXPECT_FALSE(called(kBodyBytesMax - 8));
  EXPECT_FALSE(called(kBodyBytesMax));
}

TEST_F(DoorTest, WhatDoesNotFitIntoAMessageIsRefused) {
  std::vector<char> big(kBodyBytesMax);
  const Arguments<Op::CopyInline> args(kArena, big.data(), big.size(), nullptr);
  EXPECT_EQ(Encode<Op::CopyInline>(args), Refusal::kTooLong);
  EXPECT_EQ(RequestBytesMax(Op::CopyInline, args.values()), kBodyBytesMax);
}

TEST_F(DoorTest, StagingOffsetsStayInTheStagingArea) {
  const Mark mark;
  const auto refused = [&](uint64_t offset, size_t count) {
    EXPECT_EQ(
        Encode<Op::CopyStagedIn>(Arguments<Op::CopyStagedIn>(kArena, offset, count, nullptr, mark)),
        Refusal::kNone);
    return Serve(Op::CopyStagedIn).status != 0;
  };
  EXPECT_FALSE(refused(limits::kStagingBytes - 16, 16));
  EXPECT_TRUE(refused(limits::kStagingBytes - 16, 17));
  EXPECT_TRUE(refused(UINT64_MAX - 7, 16));
}

}  // namespace
}  // namespace ipc
