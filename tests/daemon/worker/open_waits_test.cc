// Which waits of an ended session are answered, and with what.
#include "daemon/worker/open_waits.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "ipc/driver_table.h"
#include "tests/daemon/worker/recording_driver.h"

namespace worker {
namespace {

constexpr CUdeviceptr kWord = 0x1000, kOther = 0x2000;

struct Device {
  std::vector<CUevent> behind;  // recorded, in order
  std::set<CUevent> reached;
  std::vector<std::string> written;
  CUresult takes = CUDA_SUCCESS;
} device;

CUresult EventRecord(CUevent event, CUstream) {
  device.behind.push_back(event);
  return CUDA_SUCCESS;
}
CUresult EventQuery(CUevent event) {
  return device.reached.count(event) != 0 ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}
CUresult Wait32(CUstream, CUdeviceptr, cuuint32_t, unsigned) { return device.takes; }
CUresult Write32(CUstream, CUdeviceptr address, cuuint32_t value, unsigned) {
  device.written.push_back(absl::StrCat(absl::Hex(address), "=", value));
  return CUDA_SUCCESS;
}
CUresult Write64(CUstream, CUdeviceptr address, cuuint64_t value, unsigned) {
  device.written.push_back(absl::StrCat(absl::Hex(address), "=", value, "wide"));
  return CUDA_SUCCESS;
}

class OpenWaitsTest : public testing::Test {
 protected:
  OpenWaitsTest() {
    device = Device();
    FreshRecording();
    environment_ = RecordingEnvironment();
    table_ = *environment_.driver;
    table_.cuEventRecord = &EventRecord;
    table_.cuEventQuery = &EventQuery;
    table_.cuStreamWaitValue32_v2 = &Wait32;
    table_.cuStreamWriteValue32_v2 = &Write32;
    table_.cuStreamWriteValue64_v2 = &Write64;
    environment_.driver = &table_;
  }
  std::vector<std::string> Answers(OpenWaits* waits) {
    device.written.clear();
    waits->AnswerFirst();
    return device.written;
  }
  static CUstream Stream(uintptr_t number) { return reinterpret_cast<CUstream>(number); }
  static uint64_t Answer(unsigned flags, uint64_t value, bool wide) {
    uint64_t answer = 77;
    EXPECT_TRUE(OpenWaits::Answer({kWord, value, flags, wide}, &answer));
    return answer;
  }

  Environment environment_;
  ipc::DriverTable table_;
};

using Words = std::vector<std::string>;

TEST_F(OpenWaitsTest, EveryConditionHasItsAnswer) {
  EXPECT_EQ(Answer(CU_STREAM_WAIT_VALUE_GEQ, 5, false), 5u);
  EXPECT_EQ(Answer(CU_STREAM_WAIT_VALUE_EQ | CU_STREAM_WAIT_VALUE_FLUSH, 6, true), 6u);
  EXPECT_EQ(Answer(CU_STREAM_WAIT_VALUE_AND, 12, false), 12u);
  EXPECT_EQ(Answer(CU_STREAM_WAIT_VALUE_NOR, 12, false), 0u);
  EXPECT_EQ(Answer(CU_STREAM_WAIT_VALUE_NOR, UINT32_MAX, true), 0u);
}

TEST_F(OpenWaitsTest, AWaitThatNoValueEndsIsRefused) {
  OpenWaits waits(environment_);
  EXPECT_EQ(waits.Add(Stream(1), {kWord, 0, CU_STREAM_WAIT_VALUE_AND, false}),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(waits.Add(Stream(1), {kWord, UINT32_MAX, CU_STREAM_WAIT_VALUE_NOR, false}),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(waits.Add(Stream(1), {kWord, UINT64_MAX, CU_STREAM_WAIT_VALUE_NOR, true}),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(Answers(&waits), Words());
}

TEST_F(OpenWaitsTest, AStreamsWaitsAreAnsweredOneAfterTheOther) {
  OpenWaits waits(environment_);
  EXPECT_EQ(waits.Add(Stream(1), {kWord, 1, CU_STREAM_WAIT_VALUE_EQ, false}), CUDA_SUCCESS);
  EXPECT_EQ(waits.Add(Stream(1), {kWord, 2, CU_STREAM_WAIT_VALUE_EQ, true}), CUDA_SUCCESS);
  EXPECT_EQ(waits.Add(Stream(2), {kOther, 3, CU_STREAM_WAIT_VALUE_GEQ, false}), CUDA_SUCCESS);
  EXPECT_EQ(Answers(&waits), Words({"1000=1", "2000=3"}));
  device.reached.insert(device.behind[0]);
  EXPECT_EQ(Answers(&waits), Words({"1000=2wide", "2000=3"}));
  device.reached.insert(device.behind[2]);
  EXPECT_EQ(Answers(&waits), Words({"1000=2wide"})) << "what is over may lie in others' memory";
  device.reached.insert(device.behind[1]);
  EXPECT_EQ(Answers(&waits), Words());
}

TEST_F(OpenWaitsTest, WaitsForOneWordHaveTheirTurns) {
  OpenWaits waits(environment_);
  EXPECT_EQ(waits.Add(Stream(1), {kWord, 1, CU_STREAM_WAIT_VALUE_EQ, false}), CUDA_SUCCESS);
  EXPECT_EQ(waits.Add(Stream(2), {kWord, 2, CU_STREAM_WAIT_VALUE_EQ, false}), CUDA_SUCCESS);
  Words both = Answers(&waits);
  const Words second = Answers(&waits);
  both.insert(both.end(), second.begin(), second.end());
  EXPECT_EQ(std::set<std::string>(both.begin(), both.end()),
            std::set<std::string>({"1000=1", "1000=2"}));
}

TEST_F(OpenWaitsTest, WhatTheDriverRefusesIsNoWait) {
  OpenWaits waits(environment_);
  device.takes = CUDA_ERROR_INVALID_HANDLE;
  EXPECT_EQ(waits.Add(Stream(1), {kWord, 1, CU_STREAM_WAIT_VALUE_EQ, false}),
            CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(Answers(&waits), Words());
}

}  // namespace
}  // namespace worker
