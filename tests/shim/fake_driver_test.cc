// The fake driver keeps a stream's order and an extent's bytes, as the shim's tests rely on it.
#include "tests/shim/fake_driver.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "ipc/calls/limits.h"
#include "tests/shim/fake_memory.h"
#include "tests/shim/fake_streams.h"

namespace shim_test {
namespace {

class FakeDriverTest : public ::testing::Test {
 protected:
  void TearDown() override { FakeStreams::Process().Release(); }

  CUstream NewStream() {
    CUstream stream = nullptr;
    EXPECT_EQ(driver_.cuStreamCreateWithPriority(&stream, 0, 0), CUDA_SUCCESS);
    return stream;
  }
  // Has the device write the word behind what is on the stream.
  void Write(CUstream stream, uint64_t value) {
    const CUdeviceptr word = reinterpret_cast<CUdeviceptr>(&word_);
    EXPECT_EQ(driver_.cuStreamWriteValue64_v2(stream, word, value, 0), CUDA_SUCCESS);
  }
  void AwaitGate(CUstream stream) {
    const CUdeviceptr gate = reinterpret_cast<CUdeviceptr>(&gate_);
    EXPECT_EQ(driver_.cuStreamWaitValue64_v2(stream, gate, 1, CU_STREAM_WAIT_VALUE_GEQ),
              CUDA_SUCCESS);
  }

  const ipc::DriverTable driver_ = FakeDriver();
  std::atomic<uint64_t> word_{0};
  std::atomic<uint64_t> gate_{0};
};

constexpr CUdeviceptr kAddress =
    ipc::limits::kSlotBase + FakeMemory::kSlot * ipc::limits::kSlotBytes;
constexpr uint64_t kBytes = ipc::limits::kExtentBytesMin;

worker::Extent MakeExtent() {
  worker::ExtentRecord wanted;
  wanted.bytes = kBytes;
  worker::Extent extent;
  EXPECT_EQ(FakeMemory::Process().Create(wanted, &extent), CUDA_SUCCESS);
  return extent;
}

TEST_F(FakeDriverTest, ABusyDeviceDoesItsWorkWhenItIsReleased) {
  const CUstream stream = NewStream();
  FakeStreams::Process().Hold();
  EXPECT_EQ(driver_.cuStreamQuery(stream), CUDA_SUCCESS) << "it has nothing to do";
  Write(stream, 1);
  EXPECT_EQ(driver_.cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(word_, 0u);
  FakeStreams::Process().Release();
  EXPECT_EQ(word_, 1u);
  EXPECT_EQ(driver_.cuStreamQuery(stream), CUDA_SUCCESS);
}

TEST_F(FakeDriverTest, WorkBehindAWaitWaits) {
  const CUstream stream = NewStream(), other = NewStream();
  AwaitGate(stream);
  Write(stream, 1);
  EXPECT_EQ(driver_.cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(driver_.cuStreamQuery(other), CUDA_SUCCESS);
  EXPECT_EQ(word_, 0u);
  gate_ = 1;
  EXPECT_EQ(driver_.cuStreamQuery(stream), CUDA_SUCCESS);
  EXPECT_EQ(word_, 1u);
}

TEST_F(FakeDriverTest, AnEventIsReachedAfterWhatWasBeforeItAlone) {
  const CUstream stream = NewStream(), other = NewStream();
  CUevent early = nullptr, late = nullptr;
  EXPECT_EQ(driver_.cuEventCreate(&early, 0), CUDA_SUCCESS);
  EXPECT_EQ(driver_.cuEventCreate(&late, 0), CUDA_SUCCESS);
  EXPECT_EQ(driver_.cuEventRecord(early, stream), CUDA_SUCCESS);
  AwaitGate(stream);
  EXPECT_EQ(driver_.cuEventRecord(late, stream), CUDA_SUCCESS);
  EXPECT_EQ(driver_.cuEventQuery(early), CUDA_SUCCESS);
  EXPECT_EQ(driver_.cuEventQuery(late), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(driver_.cuStreamWaitEvent(other, late, 0), CUDA_SUCCESS);
  Write(other, 2);
  EXPECT_EQ(driver_.cuStreamQuery(other), CUDA_ERROR_NOT_READY);
  gate_ = 1;
  EXPECT_EQ(driver_.cuStreamQuery(other), CUDA_SUCCESS);
  EXPECT_EQ(word_, 2u);
}

TEST_F(FakeDriverTest, AFaultComesOnce) {
  FailNext("cuMemHostRegister_v2", CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(driver_.cuMemHostRegister_v2(&word_, sizeof word_, 0), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(driver_.cuMemHostRegister_v2(&word_, sizeof word_, 0), CUDA_SUCCESS);
}

TEST_F(FakeDriverTest, AnExtentKeepsItsBytesWhereverItIsMapped) {
  const worker::Extent extent = MakeExtent(), other = MakeExtent();
  ASSERT_EQ(driver_.cuMemMap(kAddress, kBytes, 0, extent.handle, 0), CUDA_SUCCESS);
  EXPECT_EQ(driver_.cuMemMap(kAddress, kBytes, 0, other.handle, 0), CUDA_ERROR_INVALID_VALUE);
  const CUstream stream = NewStream();
  ASSERT_EQ(driver_.cuMemsetD8Async(kAddress, 7, 3, stream), CUDA_SUCCESS);
  ASSERT_EQ(driver_.cuMemUnmap(kAddress, kBytes), CUDA_SUCCESS);
  ASSERT_EQ(driver_.cuMemMap(kAddress + kBytes, kBytes, 0, extent.handle, 0), CUDA_SUCCESS);
  ASSERT_EQ(driver_.cuMemMap(kAddress, kBytes, 0, other.handle, 0), CUDA_SUCCESS);
  std::vector<unsigned char> bytes(4);
  ASSERT_EQ(driver_.cuMemcpyDtoHAsync_v2(bytes.data(), kAddress + kBytes, 4, stream), CUDA_SUCCESS);
  EXPECT_EQ(bytes, (std::vector<unsigned char>{7, 7, 7, 0}));
  ASSERT_EQ(driver_.cuMemcpyDtoHAsync_v2(bytes.data(), kAddress, 4, stream), CUDA_SUCCESS);
  EXPECT_EQ(bytes, (std::vector<unsigned char>{0, 0, 0, 0}));
  EXPECT_EQ(driver_.cuMemUnmap(kAddress, kBytes), CUDA_SUCCESS);
  EXPECT_EQ(driver_.cuMemUnmap(kAddress + kBytes, kBytes), CUDA_SUCCESS);
  FakeMemory::Process().Free(extent);
  FakeMemory::Process().Free(other);
}

TEST_F(FakeDriverTest, ADeviceHasNoMoreThanItsBytes) {
  FakeMemory& memory = FakeMemory::Process();
  memory.SetDeviceBytes(kBytes);
  const worker::Extent extent = MakeExtent();
  worker::ExtentRecord wanted;
  wanted.bytes = kBytes;
  worker::Extent more;
  EXPECT_EQ(memory.Create(wanted, &more), CUDA_ERROR_OUT_OF_MEMORY);
  memory.Free(extent);
  ASSERT_EQ(memory.Create(wanted, &more), CUDA_SUCCESS);
  memory.Free(more);
  memory.SetDeviceBytes(FakeMemory::kDeviceBytes);
}

}  // namespace
}  // namespace shim_test
