#include "daemon/control/admission.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <utility>
#include <vector>

#include "tests/daemon/control/parts.h"

namespace control {
namespace {

namespace wire = ipc::control;

class AdmissionTest : public PartsTest {
 protected:
  // A program says hello. The session exists afterwards.
  Session* Hello(ipc::Mode mode = ipc::Mode::kShared) {
    int pair[2] = {-1, -1};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    ipc::Hello hello;
    hello.mode = mode;
    hello.transport = ipc::Transport::kRing;
    hello.tables = ipc::OwnTables();
    ipc::Peer peer;
    peer.pid = getpid();
    peer.uid = getuid();
    program_ = ipc::UniqueFd(pair[1]);
    admission_.Create(hello, peer, ipc::UniqueFd(pair[0]), *ipc::OpenPidfd(getpid()));
    return &sessions_.all().rbegin()->second;
  }
  ipc::Welcome Heard() const {
    ipc::Welcome welcome;
    const absl::StatusOr<ipc::Packet> packet = ipc::ReceivePacket(program_.get(), 0);
    EXPECT_TRUE(packet.ok() && packet->bytes.size() == sizeof welcome);
    if (packet.ok()) std::memcpy(&welcome, packet->bytes.data(), sizeof welcome);
    return welcome;
  }

  Seal seal_;
  ipc::UniqueFd program_;
  InProcess in_process_{
      {&loop_, &children_, &sessions_, &scheduler_, &lifecycle_, &grants_, &seal_},
      [] { return 1'000'000; }};
  Admission admission_{&core_, &worker_link_, &in_process_};
};

TEST_F(AdmissionTest, AProgramThatHasEndedBeforeItsHelloIsReadLeavesNothing) {
  ipc::Hello hello;
  hello.tables = ipc::OwnTables();
  ipc::UniqueFd ended(eventfd(1, EFD_CLOEXEC));  // readable, as the pidfd of such a process
  admission_.Create(hello, {getpid(), getuid()}, ipc::UniqueFd(), std::move(ended));
  EXPECT_TRUE(sessions_.all().empty());
  EXPECT_TRUE(scheduler_.state().sessions.empty());
}

TEST_F(AdmissionTest, NumbersOfWhichTheKeeperHasMemoryAreNotUsedAgain) {
  children_.AddUsage({{wire::OwnerKind::kSession, 4}, 1 << 21, 0, 0});
  children_.AddUsage({{wire::OwnerKind::kLane, wire::OwnLaneOf(6)}, 1 << 21, 0, 0});
  children_.AddUsage({{wire::OwnerKind::kLane, 9}, 1 << 21, 0, 0});
  admission_.NoteUsedNumbers();
  const Session* const session = Hello();
  EXPECT_EQ(session->record.session_id, 7u);
  EXPECT_EQ(Known(7)->lane, 10);
}

TEST_F(AdmissionTest, AnAdmittedSessionIsAttachedAndWelcome) {
  Session* const session = Hello();
  EXPECT_NE(Known(session->record.session_id), nullptr) << "the scheduler decides";
  session->link->Begin(session);
  EXPECT_EQ(session->phase, Phase::kWaiting);
  worker_link_.Serve(session);
  EXPECT_EQ(session->phase, Phase::kAttaching);
  EXPECT_EQ(children_.SentTo<wire::AttachSession>(1).size(), 1u);
  worker_link_.OnAttached(session, wire::Attached{.session_id = session->record.session_id});
  EXPECT_EQ(session->phase, Phase::kRunning);
  EXPECT_EQ(Heard().result, 0u);
}

TEST_F(AdmissionTest, ASessionThatItsWorkerRefusesIsEndingAndToldSo) {
  Session* const session = Hello();
  session->link->Begin(session);
  worker_link_.Serve(session);
  wire::Attached refused{.session_id = session->record.session_id};
  refused.result = 2;
  worker_link_.OnAttached(session, refused);
  EXPECT_EQ(session->phase, Phase::kEnding);
  EXPECT_EQ(Known(session->record.session_id)->phase, scheduler::Phase::kEnding);
  EXPECT_EQ(Heard().result, 2u);
}

TEST_F(AdmissionTest, AProgramThatIsGoneBeforeItsWelcomeIsDetached) {
  Session* const session = Hello();
  session->link->Begin(session);
  worker_link_.Serve(session);
  program_.Reset();
  worker_link_.OnAttached(session, wire::Attached{.session_id = session->record.session_id});
  EXPECT_EQ(session->phase, Phase::kEnding);
  EXPECT_EQ(children_.SentTo<wire::DetachSession>(1).size(), 1u);
}

TEST_F(AdmissionTest, ASessionWaitsForAWorkerThatStarts) {
  children_.RemoveWorker(1);
  Session* const session = Hello();
  session->link->Begin(session);
  worker_link_.Serve(session);
  EXPECT_EQ(session->phase, Phase::kWaiting);
  ASSERT_EQ(children_.workers().size(), 1u);
  const uint32_t worker = children_.workers().begin()->first;
  children_.AddWorker(worker);
  worker_link_.Serve(session);
  EXPECT_EQ(children_.SentTo<wire::AttachSession>(worker).size(), 1u);
}

TEST_F(AdmissionTest, ALostWorkerIsReplacedAFewTimes) {
  Session* const session = Hello();
  session->link->Begin(session);
  worker_link_.Serve(session);
  for (int i = 1; i < WorkerLink::kAttemptsMax; ++i) {
    EXPECT_TRUE(worker_link_.AttachAgain(session));
    worker_link_.Serve(session);
  }
  EXPECT_FALSE(worker_link_.AttachAgain(session));
}

TEST_F(AdmissionTest, AContainedSessionWhoseWorkerIsLostGetsAnother) {
  Session* const session = Hello(ipc::Mode::kContained);
  session->link->Begin(session);
  worker_link_.Serve(session);
  const uint32_t lost = session->own_worker;
  children_.AddWorker(lost, true, true);
  worker_link_.Serve(session);
  children_.RemoveWorker(lost);
  EXPECT_TRUE(worker_link_.AttachAgain(session));
  worker_link_.Serve(session);
  EXPECT_NE(session->own_worker, lost);
  EXPECT_EQ(children_.workers().count(session->own_worker), 1u);
}

TEST_F(AdmissionTest, AnInProcessSessionNeedsNoWorker) {
  Session* const session = Hello(ipc::Mode::kInProcess);
  session->link->Begin(session);
  EXPECT_EQ(session->phase, Phase::kRunning);
  EXPECT_FALSE(session->has_slot);
  EXPECT_TRUE(children_.SentTo<wire::AttachSession>(1).empty());
  EXPECT_EQ(Heard().result, 0u);
}

TEST_F(AdmissionTest, AProgramWithItsOwnContextIsOutWhenItEnds) {
  const pid_t child = fork();
  if (child == 0) _exit(0);
  const ipc::UniqueFd ended = *ipc::OpenPidfd(child);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  Session* const session = Hello(ipc::Mode::kInProcess);
  const uint64_t id = session->record.session_id;
  session->link->Begin(session);
  ASSERT_EQ(session->phase, Phase::kRunning);
  loop_.Unwatch(session->fds.process.get());
  ASSERT_GE(dup3(ended.get(), session->fds.process.get(), O_CLOEXEC), 0);
  admission_.NoticeEnding();
  EXPECT_EQ(sessions_.Find(id), nullptr) << "no worker has anything to clean up";
}

TEST_F(AdmissionTest, AQuarantinedProgramIsContained) {
  for (int i = 0; i < Placement::kOffencesMax; ++i) (void)placement_.NoteOffence(getuid(), "");
  EXPECT_EQ(Hello()->record.contained, 1u);
}

}  // namespace
}  // namespace control
