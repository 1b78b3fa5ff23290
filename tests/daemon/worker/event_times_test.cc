// Times of events that another worker has recorded.
#include "daemon/worker/event_times.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <memory>

#include "ipc/unique_fd.h"
#include "tests/daemon/worker/recording_driver.h"

namespace worker {
namespace {

constexpr ipc::HandleId kFirst{3}, kSecond{4}, kThird{700'000};

class EventTimesTest : public testing::Test {
 protected:
  EventTimesTest() {
    environment_.contexts = {nullptr};
    times_ = Make();
  }
  std::unique_ptr<EventTimes> Make() {
    return std::make_unique<EventTimes>(environment_, file_.get());
  }
  CUevent Create() {
    CUevent event = nullptr;
    EXPECT_EQ(environment_.driver->cuEventCreate(&event, 0), CUDA_SUCCESS);
    return event;
  }
  void Record(CUevent event, double ms) {
    recording_.device_ms = ms;
    EXPECT_EQ(environment_.driver->cuEventRecord(event, nullptr), CUDA_SUCCESS);
    times_->OnRecord(event);
  }
  // The session goes on in another worker, whose device has another clock.
  void Move() {
    times_ = Make();
    recording_.device_ms = 1e6;
    recording_.reached_ms.clear();
  }
  CUevent Bound(ipc::HandleId id) {
    const CUevent event = Create();
    times_->OnBind(id, event);
    return event;
  }

  Recording& recording_ = FreshRecording();
  Environment environment_ = RecordingEnvironment();
  ipc::UniqueFd file_{memfd_create("times", MFD_CLOEXEC)};
  std::unique_ptr<EventTimes> times_;
  float ms_ = -1;
};

TEST_F(EventTimesTest, TheNextWorkerHasThemAndTheOneAfter) {
  const CUevent first = Create(), second = Create(), third = Create();
  Record(first, 10);
  Record(second, 12.5);
  times_->Save(0, std::vector<EventTimes::Recorded>{{kFirst, first}, {kSecond, second}});
  Record(third, 1012.5);
  times_->Save(0, std::vector<EventTimes::Recorded>{{kThird, third}});
  ASSERT_EQ(times_->Elapsed(&ms_, first, second), CUDA_SUCCESS);
  EXPECT_FLOAT_EQ(ms_, 2.5);
  for (int worker = 0; worker < 2; ++worker) {
    Move();
    const CUevent again[] = {Bound(kFirst), Bound(kSecond), Bound(kThird)};
    ASSERT_EQ(times_->Elapsed(&ms_, again[0], again[1]), CUDA_SUCCESS);
    EXPECT_NEAR(ms_, 2.5, 1e-3);
    ASSERT_EQ(times_->Elapsed(&ms_, again[2], again[1]), CUDA_SUCCESS);
    EXPECT_NEAR(ms_, -1000, 1e-3) << "saved at another moment";
  }
}

TEST_F(EventTimesTest, RecordedAnewItHasItsNewTime) {
  const CUevent first = Create(), second = Create();
  Record(first, 10);
  Record(second, 12.5);
  times_->Save(0, std::vector<EventTimes::Recorded>{{kFirst, first}, {kSecond, second}});
  Move();
  const CUevent again[] = {Bound(kFirst), Bound(kSecond)};
  Record(again[1], 1e6);
  ASSERT_EQ(times_->Elapsed(&ms_, again[0], again[1]), CUDA_SUCCESS);
  EXPECT_GT(ms_, 2.5) << "by the host's clock";
  Record(again[0], 1e6 - 7);
  ASSERT_EQ(times_->Elapsed(&ms_, again[0], again[1]), CUDA_SUCCESS);
  EXPECT_NEAR(ms_, 7, 0.1);
}

TEST_F(EventTimesTest, WhoHasNoTimeGetsNone) {
  const CUevent untimed = Create(), gone = Create();
  Record(gone, 3);
  times_->Save(0, std::vector<EventTimes::Recorded>{{kFirst, untimed}, {kSecond, gone}});
  times_->OnRelease(kSecond, gone);
  Move();
  EXPECT_EQ(times_->Elapsed(&ms_, Bound(kFirst), Bound(kSecond)), CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(EventTimesTest, BetweenTwoDevicesThereIsNoTime) {
  const CUevent first = Create(), second = Create();
  Record(first, 10);
  Record(second, 12);
  times_->Save(0, std::vector<EventTimes::Recorded>{{kFirst, first}});
  times_->Save(1, std::vector<EventTimes::Recorded>{{kSecond, second}});
  Move();
  EXPECT_EQ(times_->Elapsed(&ms_, Bound(kFirst), Bound(kSecond)), CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(EventTimesTest, AResetForgetsThemAll) {
  const CUevent first = Create();
  Record(first, 3);
  times_->Save(0, std::vector<EventTimes::Recorded>{{kFirst, first}});
  times_->Clear(true);
  Move();
  const CUevent again = Bound(kFirst);
  EXPECT_EQ(times_->Elapsed(&ms_, again, again), CUDA_ERROR_INVALID_HANDLE);
}

}  // namespace
}  // namespace worker
