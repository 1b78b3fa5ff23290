// A session at its gate and in its lane, over the recording driver: the device's work ends when the
// test says so.
#include "daemon/worker/lane_executor.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <memory>
#include <utility>
#include <vector>

#include "daemon/worker/lanes.h"
#include "daemon/worker/stream_notices.h"
#include "tests/daemon/worker/recording_driver.h"

namespace worker {
namespace {

namespace limits = ipc::limits;
namespace wire = ipc::control;

constexpr uint64_t kLane = 5;
constexpr uint64_t kPart = 2 * limits::MiB;

// What the driver owes: the callbacks behind the work of busy streams.
struct Owed {
  CUstreamCallback callback;
  CUstream stream;
  void* data;
};
std::vector<Owed> owed;

// The parts of a session that its lane needs. The test is its lanewayd, and assigns kLane.
class LaneExecutorTest : public ::testing::Test, public DaemonLink {
 protected:
  void SetUp() override {
    FreshRecording().capacity_bytes = 64 * limits::MiB;
    owed.clear();
    environment_ = RecordingEnvironment();
    driver_ = *environment_.driver;
    driver_.cuStreamAddCallback = [](CUstream stream, CUstreamCallback callback, void* data,
                                     unsigned) {
      owed.push_back({callback, stream, data});
      return CUDA_SUCCESS;
    };
    environment_.driver = &driver_;
    environment_.contexts = {reinterpret_cast<CUcontext>(1)};
    environment_.lanes = &lanes_;
    environment_.daemon = this;
    const absl::StatusOr<int> fd = ipc::SessionFile::Create(1, 0);
    ASSERT_TRUE(fd.ok()) << fd.status();
    absl::StatusOr<ipc::SessionFile> mapped = ipc::SessionFile::Map(*fd);
    close(*fd);
    ASSERT_TRUE(mapped.ok()) << mapped.status();
    session_ = std::make_unique<Session>(
        this, SessionSetup{.session_id = 1, .file = std::move(*mapped), .channel = {}});
    std::string error;
    ASSERT_TRUE(session_->held.arena.Reserve(&error)) << error;
  }

  void Post(const wire::WorkerToDaemon& message) override {
    const wire::LaneNeeded* const needed = std::get_if<wire::LaneNeeded>(&message);
    if (needed == nullptr) return;
    session_->lane.Told(kLane);
    session_->parking.Keep(wire::AssignLane{1, kLane, needed->bytes, 0, 0, 1});
  }
  uint64_t Daemon() const override { return 1; }

  struct Session {
    Session(LaneExecutorTest* test, SessionSetup setup)
        : file(std::move(setup.file)),
          notices(test->environment_, &file),
          held(test->environment_, setup, nullptr),
          iterations(test->environment_, file.page(), &progress),
          turn({1, &held, &life, &lane, &notices.bell, &notices.callbacks, &iterations, file.page(),
                [test] { return test->message_waits_; }}) {
      call.device = 0;
    }

    ipc::SessionFile file;
    ipc::Progress progress{};
    SessionLife life{file.page(), 0};
    Parking parking{file.page(), &progress, [] { return true; }};
    StreamNotices notices;
    Holdings held;
    CallContext call;
    MemoryRequests requests{
        {1, &held, &life, &parking, &call, [] { return false; }, [] {}, [] {}, [] {}}};
    Iterations iterations;
    LaneMembership lane{{1, &held, &call, &life, &requests,
                         [this](uint64_t id) { return turn.IsGranted(id); },
                         [this] { return turn.IsQuiet(); }}};
    LaneExecutor turn;
  };

  // The session has a part of kLane, and its turn.
  void GiveTurn() {
    session_->turn.JoinBoard(&board_, [] {});
    board_.Grant(1, kLane);
    ASSERT_EQ(session_->lane.GrowInLane(kPart), CUDA_SUCCESS);
    ASSERT_TRUE(session_->lane.is_inside());
  }
  // An operation of the session that the device works on until EndWork().
  void BeginWork() {
    StreamTable::Stream* const legacy = session_->held.streams.Legacy(0);
    recording_.busy_streams.insert(legacy->driver);
    session_->turn.OnWork();
  }
  void EndWork() {
    recording_.busy_streams.clear();
    for (const Owed& due : std::exchange(owed, {}))
      due.callback(due.stream, CUDA_SUCCESS, due.data);
  }
  LaneExecutor& turn() { return session_->turn; }
  LaneMembership& lane() { return session_->lane; }

  Recording& recording_ = FreshRecording();
  ipc::DriverTable driver_;
  Environment environment_;
  LaneTable lanes_{&environment_};
  Board board_{[](const wire::WorkerToDaemon&) {}};
  bool message_waits_ = false;
  std::unique_ptr<Session> session_;
};

TEST_F(LaneExecutorTest, WithoutABoardItIsAlwaysItsTurn) {
  EXPECT_TRUE(turn().IsItsTurn());
  EXPECT_TRUE(turn().IsGranted(kLane));
}

TEST_F(LaneExecutorTest, AGrantIsForOneLane) {
  GiveTurn();
  EXPECT_TRUE(turn().IsGranted(kLane));
  EXPECT_FALSE(turn().IsGranted(kLane + 1)) << "it has not been told of that one yet";
  EXPECT_TRUE(turn().IsGranted(wire::OwnLaneOf(1))) << "no other session enters there";
}

TEST_F(LaneExecutorTest, ARevokedSessionLeavesAtItsBoundary) {
  GiveTurn();
  session_->file.page()->lane_blocks.store(1);
  turn().OnWork();
  board_.Revoke(1);
  turn().OnLook();
  EXPECT_FALSE(turn().gate()->closed());
  turn().OnBoundary();
  EXPECT_TRUE(turn().gate()->closed());
  EXPECT_FALSE(lane().is_inside());
  EXPECT_FALSE(board_.View(1).granted);
}

TEST_F(LaneExecutorTest, TheLaneIsHandedOverWhenTheDeviceHasFinished) {
  GiveTurn();
  BeginWork();
  board_.Revoke(1);
  turn().OnBoundary();
  EXPECT_TRUE(turn().gate()->closed()) << "no further work passes";
  EXPECT_TRUE(lane().is_inside()) << "its work still writes there";
  EXPECT_TRUE(board_.View(1).granted);
  EXPECT_FALSE(turn().IsQuiet());
  EndWork();
  EXPECT_FALSE(lane().is_inside());
  EXPECT_FALSE(board_.View(1).granted);
  EXPECT_TRUE(turn().IsQuiet());
}

TEST_F(LaneExecutorTest, AStreamWhoseCallbackTheDriverRefusesHandsOverAtOnce) {
  GiveTurn();
  BeginWork();
  driver_.cuStreamAddCallback = [](CUstream, CUstreamCallback, void*, unsigned) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  };
  board_.Revoke(1);
  turn().OnBoundary();
  EXPECT_FALSE(board_.View(1).granted);
}

TEST_F(LaneExecutorTest, InsideACallItLeavesBetweenIterationsAlone) {
  GiveTurn();
  session_->file.page()->lane_blocks.store(1);
  turn().OnWork();
  board_.Revoke(1);
  turn().OnWait();
  EXPECT_TRUE(lane().is_inside()) << "a block of its iteration lies there";
  turn().OnBoundary();
  EXPECT_FALSE(lane().is_inside());
}

TEST_F(LaneExecutorTest, MessagesThatWaitKeepTheLane) {
  GiveTurn();
  turn().OnWork();
  message_waits_ = true;
  EXPECT_FALSE(turn().LaneIsEmpty()) << "they may use the blocks that the client has freed since";
  message_waits_ = false;
  EXPECT_TRUE(turn().LaneIsEmpty());
  session_->file.page()->lane_blocks.store(1);
  EXPECT_FALSE(turn().LaneIsEmpty());
}

TEST_F(LaneExecutorTest, AnOrderOutIsRefusedInsideAnIteration) {
  GiveTurn();
  EXPECT_EQ(turn().OnOrderedOut({}), LaneAction::kMayGo);
  turn().OnWork();
  EXPECT_EQ(turn().OnOrderedOut({}), LaneAction::kRefuseInIteration);
  EXPECT_EQ(turn().OnOrderedOut({.with_lane = true}), LaneAction::kMayGo);
  lane().Leave();
  EXPECT_EQ(turn().OnOrderedOut({}), LaneAction::kMayGo) << "nothing of it lies in a lane";
}

// --- membership ----------------------------------------------------------------------------------

TEST_F(LaneExecutorTest, ItMovesToTheLaneThatItWasToldLast) {
  GiveTurn();
  lane().Told(kLane + 1);
  lane().Told(kLane + 2);
  lane().FollowTold(kLane + 1, false);
  EXPECT_TRUE(lane().is_inside()) << "that lane may have ended";
  lane().FollowTold(kLane + 2, false);
  EXPECT_FALSE(lane().has_lane());
  EXPECT_EQ(session_->held.arena.lane_member()->lane(), kLane + 2);
  EXPECT_EQ(session_->held.arena.lane_member()->reserved_bytes(), kPart);
}

// It took a lane of its own while no lanewayd was there, for example.
TEST_F(LaneExecutorTest, InsideAnIterationItMovesToTheToldLaneAtTheBoundary) {
  GiveTurn();
  turn().OnWork();
  message_waits_ = true;
  EXPECT_TRUE(turn().IsOccupied());
  lane().Told(kLane + 1);
  lane().FollowTold(kLane + 1, false, turn().IsOccupied());
  turn().Reclaim();
  EXPECT_EQ(session_->held.arena.lane_member()->lane(), kLane) << "what lives there is in use";
  turn().OnBoundary();
  EXPECT_EQ(session_->held.arena.lane_member()->lane(), kLane + 1);
  EXPECT_FALSE(lane().has_lane());
}

TEST_F(LaneExecutorTest, AClosedGateKeepsItOut) {
  session_->turn.JoinBoard(&board_, [] {});
  EXPECT_EQ(lane().GrowInLane(kPart), CUDA_SUCCESS);
  EXPECT_FALSE(lane().has_lane());
  board_.Grant(1, kLane);
  EXPECT_EQ(lane().EnterForTurn(), CUDA_SUCCESS);
  EXPECT_TRUE(lane().has_lane());
}

TEST_F(LaneExecutorTest, AGivenBackLaneIsLeft) {
  GiveTurn();
  EXPECT_EQ(lane().GiveLaneBack(), CUDA_SUCCESS);
  EXPECT_FALSE(lane().UsesLane());
  EXPECT_EQ(session_->held.arena.lane_member()->lane(), 0u);
}

}  // namespace
}  // namespace worker
