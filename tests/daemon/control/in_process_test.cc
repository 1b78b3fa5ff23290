#include "daemon/control/in_process.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include "tests/daemon/control/parts.h"

namespace control {
namespace {

namespace wire = ipc::control;

class InProcessTest : public PartsTest {
 protected:
  // An admitted session of a program whose end of the socket is `program_`.
  Session* AddProgram(uint64_t id) {
    int pair[2] = {-1, -1};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    Session* const session = Admitted(id);
    session->link = &in_process_;
    session->worker = 0;
    session->record.pid = getpid();
    session->socket = ipc::UniqueFd(pair[0]);
    program_ = ipc::UniqueFd(pair[1]);
    return session;
  }
  void Says(Session* session, const wire::ProgramToDaemon& message) {
    EXPECT_TRUE(wire::Send<wire::ProgramToDaemon>(program_.get(), message).ok());
    EXPECT_TRUE(in_process_.Receive(session));
  }

  Seal seal_;
  ipc::UniqueFd program_;
  InProcess in_process_{
      {&loop_, &children_, &sessions_, &scheduler_, &lifecycle_, &grants_, &seal_},
      [] { return 1'000'000; }};
};

TEST_F(InProcessTest, AProgramReportsAboutItsOwnSessionAlone) {
  Session* const session = AddProgram(1);
  Admitted(2);
  Says(session, wire::GateReport{2, wire::GateEvent::kRunnable});
  EXPECT_FALSE(Known(2)->runnable);
  Says(session, wire::GateReport{1, wire::GateEvent::kRunnable});
  EXPECT_TRUE(Known(1)->runnable);
}

TEST_F(InProcessTest, AProgramWhoseSocketEndsHasNoWorkAndIsWaitedFor) {
  Session* const session = AddProgram(1);
  Says(session, wire::GateReport{1, wire::GateEvent::kRunnable});
  program_.Reset();
  EXPECT_TRUE(in_process_.Receive(session));
  EXPECT_FALSE(Known(1)->runnable);
  EXPECT_EQ(sessions_.Find(1), session) << "it may say hello again";
}

TEST_F(InProcessTest, AHelloOfTheSameProcessEndsItsEarlierSession) {
  AddProgram(1);
  EXPECT_EQ(in_process_.EarlierSession(getpid(), ipc::Hello()), 0u);
  EXPECT_EQ(sessions_.Find(1), nullptr);
}

TEST_F(InProcessTest, AProgramGoesOnUnderItsNumberOnlyWithTheSeal) {
  ipc::Hello hello;
  hello.session_id = 7;
  EXPECT_EQ(in_process_.EarlierSession(getpid(), hello), 0u);
}

TEST_F(InProcessTest, ANewKeeperIsToldOfEachProgramsMemory) {
  AddProgram(1);
  Admitted(2);
  in_process_.OnKeeperReplaced();
  ASSERT_EQ(children_.ToldKeeper<wire::CountOutside>().size(), 1u);
  EXPECT_EQ(children_.ToldKeeper<wire::CountOutside>()[0].owner.id, 1u);
}

TEST_F(InProcessTest, AQueryIsAnsweredWithinTheDevice) {
  Session* const session = AddProgram(1);
  Says(session, wire::GetMemory{});
  const absl::StatusOr<wire::Received<wire::DaemonToProgram>> heard =
      wire::Receive<wire::DaemonToProgram>(program_.get(), 0);
  ASSERT_TRUE(heard.ok());
  const wire::MemoryReply* const reply = std::get_if<wire::MemoryReply>(&heard->message);
  ASSERT_NE(reply, nullptr);
  EXPECT_EQ(reply->total_bytes, uint64_t{1} << 30);
  EXPECT_EQ(reply->free_bytes, uint64_t{1} << 30);
}

}  // namespace
}  // namespace control
