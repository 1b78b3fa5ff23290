#include "daemon/worker/device_times.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "ipc/futex.h"

namespace worker {
namespace {

// A device whose events are done when the test says so.
struct Device {
  int64_t now_ns = 0;                   // its clock counts from 0
  std::map<CUevent, int64_t> recorded;  // when, on its clock
  bool stands = false;                  // what is recorded now is not done
  std::map<CUevent, bool> open;
  int events = 0, streams = 0;  // made and not destroyed
};
Device device;

CUresult CUDAAPI CreateEvent(CUevent* event, unsigned) {
  static uintptr_t last = 0;
  *event = reinterpret_cast<CUevent>(++last);
  ++device.events;
  return CUDA_SUCCESS;
}
CUresult CUDAAPI DestroyEvent(CUevent) {
  --device.events;
  return CUDA_SUCCESS;
}
CUresult CUDAAPI CreateStream(CUstream* stream, unsigned) {
  *stream = reinterpret_cast<CUstream>(1);
  ++device.streams;
  return CUDA_SUCCESS;
}
CUresult CUDAAPI DestroyStream(CUstream) {
  --device.streams;
  return CUDA_SUCCESS;
}
CUresult CUDAAPI Record(CUevent event, CUstream) {
  device.recorded[event] = device.now_ns;
  device.open[event] = device.stands;
  return CUDA_SUCCESS;
}
CUresult CUDAAPI Query(CUevent event) {
  return device.open[event] ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}
CUresult CUDAAPI Elapsed(float* ms, CUevent from, CUevent to) {
  *ms = static_cast<float>(static_cast<double>(device.recorded[to] - device.recorded[from]) / 1e6);
  return CUDA_SUCCESS;
}

class DeviceTimesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    device = {};
    table_.cuEventCreate = &CreateEvent;
    table_.cuEventDestroy_v2 = &DestroyEvent;
    table_.cuEventRecord = &Record;
    table_.cuEventQuery = &Query;
    table_.cuEventElapsedTime_v2 = &Elapsed;
    table_.cuStreamCreate = &CreateStream;
    table_.cuStreamDestroy_v2 = &DestroyStream;
  }
  // A message's work, which takes the device so long.
  bool Work(int64_t took_ns, uint16_t op = 1) {
    times_.Begin(stream_, 0);
    device.now_ns += took_ns;
    return times_.End(op, 3, 0);
  }
  std::vector<ipc::TraceEvent> Told() {
    std::vector<ipc::TraceEvent> told;
    times_.Collect([&told](const ipc::TraceEvent& event) { told.push_back(event); });
    return told;
  }

  CUstream stream_ = reinterpret_cast<CUstream>(7);
  ipc::DriverTable table_ = ipc::NullDriver();
  DeviceTimes times_{table_};
};

TEST_F(DeviceTimesTest, WorkIsTimedOnTheHostsClock) {
  const int64_t before_ns = ipc::MonotonicNs();
  EXPECT_TRUE(Work(5'000'000));
  device.now_ns += 1'000'000;
  EXPECT_TRUE(Work(2'000'000, 9));
  const std::vector<ipc::TraceEvent> told = Told();
  ASSERT_EQ(told.size(), 2u);
  EXPECT_EQ(told[0].kind, ipc::TraceKind::kDevice);
  EXPECT_EQ(told[0].slot, 3u);
  EXPECT_NEAR(told[0].end_ns - told[0].begin_ns, 5'000'000, 1000);
  EXPECT_NEAR(told[1].begin_ns - told[0].end_ns, 1'000'000, 1000);
  EXPECT_EQ(told[1].op, 9);
  EXPECT_GE(told[0].begin_ns, before_ns);
  EXPECT_LE(told[0].begin_ns, ipc::MonotonicNs());
  EXPECT_FALSE(times_.open());
}

TEST_F(DeviceTimesTest, WorkThatIsNotDoneIsToldLater) {
  ASSERT_TRUE(Work(1));
  device.stands = true;
  ASSERT_TRUE(Work(1));
  EXPECT_EQ(Told().size(), 1u);
  EXPECT_TRUE(times_.open());
  device.open.clear();
  EXPECT_EQ(Told().size(), 1u);
}

TEST_F(DeviceTimesTest, ADeviceThatStandsStillHoldsMessagesUpOnce) {
  device.stands = true;
  const int64_t before_ns = ipc::MonotonicNs();
  for (int i = 0; i < 1000; ++i) EXPECT_FALSE(Work(1));
  EXPECT_LT(ipc::MonotonicNs() - before_ns, 25'000'000'000);  // 1,000 times 50 ms would be longer
}

TEST_F(DeviceTimesTest, CallsWithoutWorkAreForgotten) {
  times_.Begin(stream_, 0);
  times_.Forget();
  EXPECT_FALSE(times_.End(1, 3, 0));
  times_.Begin(stream_, 0);
  times_.Begin(stream_, 0);  // a call that names two streams
  EXPECT_TRUE(times_.End(1, 3, 0));
  EXPECT_EQ(Told().size(), 1u);
}

TEST_F(DeviceTimesTest, OpenWorkIsBoundedAndAllObjectsGo) {
  device.stands = false;
  ASSERT_TRUE(Work(1));  // with a base
  device.stands = true;
  int kept = 0;
  for (int i = 0; i < 3000; ++i) kept += Work(1);
  EXPECT_LT(kept, 1100);
  times_.Drop();
  EXPECT_FALSE(times_.open());
  times_.Clear();
  EXPECT_EQ(device.events, 0);
  EXPECT_EQ(device.streams, 0);
}

}  // namespace
}  // namespace worker
