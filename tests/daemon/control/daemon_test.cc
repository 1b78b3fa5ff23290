// lanewayd as a whole, with children that are no processes.
#include "daemon/control/daemon.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <future>
#include <string>
#include <utility>
#include <vector>

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
    std::vector<ipc::UniqueFd> fds;
    fds.emplace_back(*ipc::SessionFile::Create(id, 0));
    fds.push_back(*ipc::OpenPidfd(getpid()));
    fds.emplace_back(memfd_create("pinned", MFD_CLOEXEC));
    fds.emplace_back(memfd_create("swap", MFD_CLOEXEC));
    wire::SessionRecord record;
    record.session_id = id;
    record.pid = getpid();
    record.job.number = id;
    record.place = place;
    daemon_->OnWorkerReport(1, record, &fds);
  }
  void Report(uint32_t worker, const WorkerReport& report) {
    std::vector<ipc::UniqueFd> none;
    daemon_->OnWorkerReport(worker, report, &none);
  }
  void Serve() {
    daemon_ = std::make_unique<Daemon>(options_, &loop_, &children_, [](const std::string&) {});
    ASSERT_TRUE(daemon_->Listen().ok());
    children_.Start(daemon_.get());
  }
  std::future<std::string> Ask(const std::string& request) {
    return std::async(std::launch::async, [endpoint = ipc::ControlEndpoint(dir_.path()), request] {
      return ipc::AskControl(endpoint, request, kAnswerUs).value_or("no answer");
    });
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
  std::unique_ptr<Daemon> daemon_;
};

TEST_F(DaemonTest, AnUpgradeIsAnsweredWhenItsSessionRunsInTheNewWorker) {
  Serve();
  Adopt(1);
  daemon_->OnChildrenReady();
  std::future<std::string> asked = Ask(R"({"command":"upgrade-worker"})");
  RunUntil([this] { return children_.workers().size() == 2; });
  const uint32_t next = children_.workers().rbegin()->first;
  children_.AddWorker(next);
  daemon_->OnWorkerReady(next);
  ASSERT_EQ(children_.SentTo<wire::ReleaseSession>(1).size(), 1u);
  Report(1, wire::SessionReleased{1});
  ASSERT_EQ(children_.SentTo<wire::AttachSession>(next).size(), 1u);
  EXPECT_EQ(children_.SentTo<wire::Stop>(1).size(), 1u) << "its last session has left it";
  Report(next, wire::Attached{.session_id = 1});
  EXPECT_EQ(AnswerOf(&asked), R"({"ok":true,"moved":1,"kept":0})");
}

// The earlier lanewayd had ordered its memory to the host. The session leaves its worker first.
TEST_F(DaemonTest, AnAdoptedSessionThatMovesGoesNowhereElse) {
  Serve();
  Adopt(1, {scheduler::Residence::kGoingOut});
  daemon_->OnChildrenReady();
  std::future<std::string> top = Ask(R"({"command":"top"})");
  EXPECT_NE(AnswerOf(&top).find(R"("state":"swapped")"), std::string::npos);
  Report(1, wire::SessionReleased{1});
  top = Ask(R"({"command":"top"})");
  EXPECT_EQ(AnswerOf(&top).find(R"("state":"swapped")"), std::string::npos);
}

// It is answered although no other session moves or ends.
TEST_F(DaemonTest, AnUpgradeIsAnsweredWhenTheNewWorkerRefusesItsSession) {
  Serve();
  Adopt(1);
  daemon_->OnChildrenReady();
  std::future<std::string> asked = Ask(R"({"command":"upgrade-worker"})");
  RunUntil([this] { return children_.workers().size() == 2; });
  const uint32_t next = children_.workers().rbegin()->first;
  children_.AddWorker(next);
  daemon_->OnWorkerReady(next);
  Report(1, wire::SessionReleased{1});
  wire::Attached refused{.session_id = 1};
  refused.result = 2;
  Report(next, refused);
  Report(next, wire::SessionEnded{1});
  EXPECT_EQ(AnswerOf(&asked), R"({"ok":true,"moved":1,"kept":0})");
  EXPECT_EQ(children_.ToldKeeper<wire::ReleaseOwner>()[0].owner.id, 1u) << "its memory goes";
}

TEST_F(DaemonTest, AnUpgradeFailsWhenTheNewWorkerDoesNotStartAndTheOldOneStays) {
  Serve();
  daemon_->OnChildrenReady();
  std::future<std::string> asked = Ask(R"({"command":"upgrade-worker"})");
  RunUntil([this] { return children_.workers().size() == 2; });
  const uint32_t next = children_.workers().rbegin()->first;
  children_.RemoveWorker(next);
  daemon_->OnWorkerLost(next, false, "no driver");
  EXPECT_NE(AnswerOf(&asked).find("no driver"), std::string::npos);
  EXPECT_EQ(children_.Current()->number, 1u);
  EXPECT_TRUE(children_.SentTo<wire::Stop>(1).empty());
}

TEST_F(DaemonTest, ASessionGoesOnInAnotherWorkerWhenItsOwnIsLost) {
  Serve();
  Adopt(1);
  daemon_->OnChildrenReady();
  children_.RemoveWorker(1);
  daemon_->OnWorkerLost(1, true, "the worker ended");
  ASSERT_EQ(children_.workers().size(), 1u);
  const uint32_t next = children_.workers().begin()->first;
  children_.AddWorker(next);
  daemon_->OnWorkerReady(next);
  ASSERT_EQ(children_.SentTo<wire::AttachSession>(next).size(), 1u);
  EXPECT_EQ(children_.SentTo<wire::AttachSession>(next)[0].session.generation, 1u);
  EXPECT_TRUE(children_.ToldKeeper<wire::ReleaseOwner>().empty()) << "its memory stays";
}

}  // namespace
}  // namespace control
