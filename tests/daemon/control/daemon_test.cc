// lanewayd as a whole, with children that are no processes.
#include "daemon/control/daemon.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <future>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ipc/futex.h"
#include "ipc/runtime_dir.h"
#include "ipc/session_file.h"
#include "ipc/socket.h"
#include "ipc/zmq_control.h"
#include "tests/daemon/control/testing.h"
#include "tests/ipc/testing.h"

namespace control {
namespace {

namespace wire = ipc::control;

constexpr int64_t kAnswerUs = 10'000'000;

class DaemonTest : public ::testing::Test {
 protected:
  DaemonTest() {
    setenv("XDG_STATE_HOME", dir_.path().c_str(), 1);
    options_.runtime_dir = dir_.path();
    children_.AddWorker(1);
  }

  // A session that runs in worker 1 already, of this very process.
  void Adopt(uint64_t id, scheduler::Place place = {}) {
    wire::SessionRecord record;
    record.session_id = id;
    record.place = place;
    Adopt(1, record);
  }
  void Adopt(uint32_t worker, wire::SessionRecord record) {
    const uint64_t id = record.session_id;
    std::vector<ipc::UniqueFd> fds;  // as common::SessionFds has them
    fds.emplace_back(*ipc::SessionFile::Create(id, 0));
    fds.emplace_back(memfd_create("pinned", MFD_CLOEXEC));
    fds.push_back(*ipc::OpenPidfd(getpid()));
    fds.emplace_back(memfd_create("swap", MFD_CLOEXEC));
    record.pid = getpid();
    record.uid = geteuid();
    record.job.number = id;
    daemon_->OnWorkerReport(worker, record, &fds);
  }
  // An event on the loop.
  template <class Event>
  void Happen(const Event& event) {
    bool happened = false;
    loop_.After(0, [&] {
      event();
      happened = true;
    });
    RunUntil([&] { return happened; });
  }
  void Report(uint32_t worker, const WorkerReport& report) {
    std::vector<ipc::UniqueFd> none;
    Happen([&] { daemon_->OnWorkerReport(worker, report, &none); });
  }
  void ChildrenReady() {
    Happen([this] { daemon_->OnChildrenReady(); });
  }
  // The worker starts to serve.
  void Ready(uint32_t worker) {
    children_.AddWorker(worker);
    Happen([&] { daemon_->OnWorkerReady(worker); });
  }
  void Lose(uint32_t worker, bool was_ready, const std::string& sentence) {
    children_.RemoveWorker(worker);
    Happen([&] { daemon_->OnWorkerLost(worker, {was_ready, false, sentence}); });
  }
  // A program has said hello. Its end of the socket.
  ipc::UniqueFd Hello() {
    int pair[2] = {-1, -1};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    ipc::Hello hello;
    hello.tables = ipc::OwnTables();
    Happen([&] {
      daemon_->OnHello(hello, {getpid(), geteuid()}, ipc::UniqueFd(pair[1]),
                       *ipc::OpenPidfd(getpid()));
    });
    return ipc::UniqueFd(pair[0]);
  }
  void Request(const std::string& name, uint64_t id) {
    Command command;
    command.name = name;
    command.id = id;
    Happen([&] { daemon_->OnRequest("a person", command); });
  }
  void Serve(const Surroundings& around = Surroundings()) {
    daemon_ = std::make_unique<Daemon>(
        options_, &loop_, &children_,
        [this](const std::string& failure) { told_starter_.push_back(failure); }, around);
    ASSERT_TRUE(daemon_->Listen().ok());
    children_.Start(daemon_.get());
  }
  std::future<std::string> Ask(const std::string& request) {
    return std::async(std::launch::async, [endpoint = ipc::ControlEndpoint(dir_.path()), request] {
      return ipc::AskControl(endpoint, request, kAnswerUs).value_or("no answer");
    });
  }
  // Adds the answers that have come for the program. Returns how many there are now.
  static size_t Heard(const ipc::UniqueFd& program, std::vector<ipc::Welcome>* heard) {
    for (;;) {
      const absl::StatusOr<ipc::Packet> packet = ipc::ReceivePacket(program.get(), 0);
      if (!packet.ok() || packet->bytes.size() != sizeof(ipc::Welcome)) return heard->size();
      std::memcpy(&heard->emplace_back(), packet->bytes.data(), sizeof(ipc::Welcome));
    }
  }
  scheduler::Residence ResidenceOf(uint64_t session) const {
    return daemon_->core().scheduler.state().sessions.at(session).place.residence;
  }
  template <class Condition>
  void RunUntil(const Condition& condition) {
    while (!condition()) {
      loop_.After(1000, [] {});
      loop_.RunOnce();
    }
  }
  std::string AnswerOf(std::future<std::string>* asked) {
    RunUntil([&] { return asked->wait_for(std::chrono::seconds(0)) == std::future_status::ready; });
    return asked->get();
  }

  const ipc::TemporaryDir dir_;
  ipc::Options options_;
  common::EventLoop loop_;
  FakeChildren children_;
  std::vector<std::string> told_starter_;
  std::unique_ptr<Daemon> daemon_;
};

TEST_F(DaemonTest, AnUpgradeIsAnsweredWhenItsSessionRunsInTheNewWorker) {
  Serve();
  Adopt(1);
  ChildrenReady();
  std::future<std::string> asked = Ask(R"({"command":"upgrade-worker"})");
  RunUntil([this] { return children_.workers().size() == 2; });
  const uint32_t next = children_.workers().rbegin()->first;
  Ready(next);
  ASSERT_EQ(children_.SentTo<wire::ReleaseSession>(1).size(), 1u);
  Report(1, wire::SessionReleased{1});
  ASSERT_EQ(children_.SentTo<wire::AttachSession>(next).size(), 1u);
  EXPECT_EQ(children_.SentTo<wire::Stop>(1).size(), 1u) << "its last session has left it";
  Report(next, wire::Attached{.session_id = 1});
  EXPECT_EQ(AnswerOf(&asked), R"({"ok":true,"moved":1,"kept":0})");
}

// The earlier lanewayd had ordered its memory to the host. The session leaves its worker first.
// Its worker has not answered the order of the earlier daemon, and leaves no memory on the host.
TEST_F(DaemonTest, AnAdoptedSessionThatMovesGoesNowhereElse) {
  Serve();
  Adopt(1, {scheduler::Residence::kGoingOut});
  ChildrenReady();
  EXPECT_EQ(ResidenceOf(1), scheduler::Residence::kGoingOut);
  Report(1, wire::SessionReleased{1});
  EXPECT_EQ(ResidenceOf(1), scheduler::Residence::kDevice);
}

// It is answered although no other session moves or ends.
TEST_F(DaemonTest, AnUpgradeIsAnsweredWhenTheNewWorkerRefusesItsSession) {
  Serve();
  Adopt(1);
  ChildrenReady();
  std::future<std::string> asked = Ask(R"({"command":"upgrade-worker"})");
  RunUntil([this] { return children_.workers().size() == 2; });
  const uint32_t next = children_.workers().rbegin()->first;
  Ready(next);
  Report(1, wire::SessionReleased{1});
  wire::Attached refused{.session_id = 1};
  refused.result = 2;
  Report(next, refused);
  children_.Forget();
  Report(next, wire::SessionEnded{1});
  EXPECT_EQ(AnswerOf(&asked), R"({"ok":true,"moved":1,"kept":0})");
  EXPECT_EQ(children_.ToldKeeper<wire::ReleaseOwner>()[0].owner.id, 1u) << "its memory goes";
}

TEST_F(DaemonTest, AnUpgradeFailsWhenTheNewWorkerDoesNotStartAndTheOldOneStays) {
  Serve();
  ChildrenReady();
  std::future<std::string> asked = Ask(R"({"command":"upgrade-worker"})");
  RunUntil([this] { return children_.workers().size() == 2; });
  const uint32_t next = children_.workers().rbegin()->first;
  Lose(next, false, "no driver");
  EXPECT_NE(AnswerOf(&asked).find("no driver"), std::string::npos);
  EXPECT_EQ(children_.Current()->number, 1u);
  EXPECT_TRUE(children_.SentTo<wire::Stop>(1).empty());
}

TEST_F(DaemonTest, ASessionGoesOnInAnotherWorkerWhenItsOwnIsLost) {
  Serve();
  Adopt(1);
  ChildrenReady();
  Lose(1, true, "the worker ended");
  ASSERT_EQ(children_.workers().size(), 1u);
  const uint32_t next = children_.workers().begin()->first;
  Ready(next);
  ASSERT_EQ(children_.SentTo<wire::AttachSession>(next).size(), 1u);
  EXPECT_EQ(children_.SentTo<wire::AttachSession>(next)[0].session.generation, 1u);
  for (const wire::ReleaseOwner& release : children_.ToldKeeper<wire::ReleaseOwner>())
    EXPECT_EQ(release.owner.id, wire::OwnLaneOf(1)) << "all other memory of the session stays";
}

// The worker that was to give the lane up is lost, and no other worker has it.
TEST_F(DaemonTest, ALaneOfNoSessionIsFreedWhenTheWorkerWithItIsLost) {
  children_.AddUsage({{wire::OwnerKind::kLane, 9}, 4096, 0, 0});
  Serve();
  ChildrenReady();
  ASSERT_EQ(children_.SentTo<wire::ResizeLane>(1).size(), 1u);
  EXPECT_TRUE(children_.ToldKeeper<wire::ReleaseOwner>().empty());
  Lose(1, true, "the worker ended");
  ASSERT_EQ(children_.ToldKeeper<wire::ReleaseOwner>().size(), 1u);
  EXPECT_EQ(children_.ToldKeeper<wire::ReleaseOwner>()[0].owner.id, 9u);
}

TEST_F(DaemonTest, TheStarterIsToldOnceWhenAWorkerServes) {
  children_.RemoveWorker(1);
  Serve();
  ChildrenReady();
  ASSERT_EQ(children_.workers().size(), 1u) << "started before the first program comes";
  EXPECT_TRUE(told_starter_.empty());
  Ready(children_.workers().begin()->first);
  Happen([] {});
  EXPECT_EQ(told_starter_, std::vector<std::string>{""});
}

// A queued session gets the place of a lost session, and finds no worker either, in one event.
TEST_F(DaemonTest, ASessionThatComesInForALostOneIsNotLeftWaiting) {
  options_.user_sessions = 1;
  Serve();
  Adopt(1);
  ChildrenReady();
  const ipc::UniqueFd program = *ipc::ConnectTo(ipc::HelloSocketPath(dir_.path()));
  ipc::Hello hello;
  hello.transport = ipc::Transport::kRing;
  hello.mode = ipc::Mode::kShared;
  hello.tables = ipc::OwnTables();
  ASSERT_TRUE(ipc::SendPacket(program.get(), std::as_bytes(std::span(&hello, 1))).ok());
  std::vector<ipc::Welcome> heard;
  RunUntil([&] { return Heard(program, &heard) == 1; });
  EXPECT_NE(heard[0].queued, 0u);
  children_.FailStarts("no driver");
  Lose(1, true, "the worker ended");
  ASSERT_EQ(Heard(program, &heard), 2u);
  EXPECT_STREQ(heard[1].sentence, "no driver");
}

// Messages and questions are events, too.
TEST_F(DaemonTest, LanewayEndsWhenNoProgramCameForAWhileWhateverElseHappens) {
  options_.linger_s = 1;
  Serve();
  ChildrenReady();
  const int64_t begin_ns = ipc::MonotonicNs();
  RunUntil([this] { return children_.stopped(); });
  EXPECT_GE(ipc::MonotonicNs() - begin_ns, 900'000'000);
}

TEST_F(DaemonTest, TimeIsThatOfItsSurroundings) {
  int64_t now_us = 5'000'000;
  Surroundings around;
  around.now_us = [&now_us] { return now_us; };
  around.state_dir.clear();
  around.limits.emplace().sessions_max = 3;
  Serve(around);
  ChildrenReady();
  now_us += 7'000'000;
  const ipc::UniqueFd program = Hello();
  const scheduler::State& state = daemon_->core().scheduler.state();
  ASSERT_NE(state.Find(1), nullptr);
  EXPECT_EQ(state.Find(1)->arrived_us, now_us);
  EXPECT_EQ(state.limits.sessions_max, 3u);
  EXPECT_EQ(children_.SentTo<wire::AttachSession>(1).size(), 1u);
  Request("pause", daemon_->core().sessions.Find(1)->record.job.number);
  EXPECT_EQ(state.Find(1)->pause, scheduler::Pause::kPaused);
}

// The scheduler gives the order again when it hears that the session is there.
TEST_F(DaemonTest, ASessionThatIsEvictedWhileItMovesIsToldSoOnce) {
  int64_t now_us = 5'000'000;
  Surroundings around;
  around.now_us = [&now_us] { return now_us; };
  Serve(around);
  wire::SessionRecord record;
  record.session_id = 1;
  record.persistent_bytes = 1 << 21;
  Adopt(1, record);
  ChildrenReady();
  Lose(1, true, "the worker ended");
  const uint32_t next = children_.workers().begin()->first;
  Ready(next);
  Request("evict", 1);
  now_us += 10'000'000;  // a failed order to go is given again
  Report(next, wire::Attached{.session_id = 1, .persistent_bytes = 1 << 21});
  EXPECT_EQ(children_.SentTo<wire::Swap>(next).size(), 1u);
}

// The lost worker may have made memory there and not have said so.
TEST_F(DaemonTest, TheNextSessionOfALaneHearsFirstThatALostWorkerMayHaveChangedIt) {
  children_.AddWorker(2);
  Serve();
  wire::SessionRecord record;
  record.session_id = 1;
  record.lane = 1;
  record.turn = ipc::Turn::kHolding;
  record.wants = 1;
  Adopt(1, record);
  record.session_id = 2;
  record.turn = ipc::Turn::kOutside;
  Adopt(2, record);
  ChildrenReady();
  ASSERT_TRUE(children_.SentTo<wire::Grant>(2).empty());
  Lose(1, true, "the worker ended");
  ASSERT_EQ(children_.SentTo<wire::Grant>(2).size(), 1u);
  EXPECT_TRUE((children_.SentInOrder<wire::LaneChanged, wire::Grant>(2)));
}

// Its worker was about to ask the earlier lanewayd. It asks this one again.
TEST_F(DaemonTest, WhatAWorkerSaysOfASessionBeforeItListsItIsNotCounted) {
  Serve();
  Report(1, wire::MemoryNeeded{.session_id = 1, .bytes = 1 << 21});
  Adopt(1);
  ChildrenReady();
  EXPECT_TRUE(children_.SentTo<wire::MemoryAnswer>(1).empty());
  EXPECT_EQ(daemon_->core().scheduler.state().Find(1)->persistent_bytes, 0);
  Report(1, wire::MemoryNeeded{.session_id = 1, .bytes = 1 << 21});
  EXPECT_EQ(children_.SentTo<wire::MemoryAnswer>(1).size(), 1u);
}

// Without a lanewayd a session takes a lane of its own. The bytes count in the assigned lane.
TEST_F(DaemonTest, AnAdoptedSessionIsToldOfItsLane) {
  Serve();
  wire::SessionRecord record;
  record.session_id = 1;
  record.lane = 7;
  record.lane_bytes = 1 << 21;
  Adopt(1, record);
  EXPECT_TRUE(children_.SentTo<wire::AssignLane>(1).empty());
  ChildrenReady();
  ASSERT_EQ(children_.SentTo<wire::AssignLane>(1).size(), 1u);
  EXPECT_EQ(children_.SentTo<wire::AssignLane>(1)[0].lane, 7u);
  EXPECT_EQ(children_.SentTo<wire::AssignLane>(1)[0].answer, 0u);
}

// The worker was to bring the memory to the host, and was told to let the session go before.
TEST_F(DaemonTest, ASessionThatIsReleasedOnItsWayToTheHostIsGrantedItsLaneInTheNextWorker) {
  Serve();
  wire::SessionRecord record;
  record.session_id = record.lane = record.wants = 1;
  record.place.residence = scheduler::Residence::kGoingOut;
  Adopt(1, record);
  ChildrenReady();
  children_.RemoveWorker(1);
  children_.AddWorker(2);
  Report(1, wire::SessionReleased{1});
  Report(2, wire::Attached{.session_id = 1});
  Report(2, wire::GateReport{1, wire::GateEvent::kRunnable});
  EXPECT_EQ(children_.SentTo<wire::Grant>(2).size(), 1u);
}

TEST_F(DaemonTest, AProgramThatComesBeforeAdoptionGetsNoNumberOfAnAdoptedSession) {
  Serve();
  const ipc::UniqueFd program = Hello();
  Adopt(1);
  ChildrenReady();
  const SessionTable& sessions = daemon_->core().sessions;
  ASSERT_EQ(sessions.all().size(), 2u);
  EXPECT_EQ(sessions.Find(1)->phase, Phase::kRunning);
  EXPECT_EQ(sessions.Find(2)->phase, Phase::kAttaching);
}

TEST_F(DaemonTest, AProgramThatComesBeforeAdoptionIsCountedAndToldOfTheEnd) {
  Serve();
  const ipc::UniqueFd program = Hello();
  EXPECT_NE(daemon_->OnStopAsked(false), "") << "it would lose its program";
  EXPECT_EQ(daemon_->OnStopAsked(true), "");
  std::vector<ipc::Welcome> heard;
  ASSERT_EQ(Heard(program, &heard), 1u);
  EXPECT_NE(heard[0].result, 0u);
}

}  // namespace
}  // namespace control
