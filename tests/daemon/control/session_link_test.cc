#include "daemon/control/session_link.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include "daemon/control/in_process.h"
#include "tests/daemon/control/parts.h"

namespace control {
namespace {

namespace wire = ipc::control;

class SessionLinkTest : public PartsTest {
 protected:
  // A program with its own context, whose end of the socket is `program_`.
  Session* AddProgram(uint64_t id) {
    int pair[2] = {-1, -1};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    Session* const session = Admitted(id);
    session->link = &in_process_;
    session->worker = 0;
    session->socket = ipc::UniqueFd(pair[0]);
    program_ = ipc::UniqueFd(pair[1]);
    return session;
  }
  bool Hears() const { return wire::Receive<wire::DaemonToProgram>(program_.get(), 0).ok(); }

  Seal seal_;
  ipc::UniqueFd program_;
  InProcess in_process_{
      {&loop_, &children_, &sessions_, &scheduler_, &lifecycle_, &grants_, &seal_},
      [] { return 1'000'000; }};
};

TEST_F(SessionLinkTest, ASessionOfAWorkerHearsByItsWorkerWhileItRuns) {
  Session* const session = Admitted(1);
  session->link->Send(*session, wire::Grant{1, 7});
  session->phase = Phase::kEnding;
  session->link->Send(*session, wire::Grant{1, 7});
  EXPECT_EQ(children_.SentTo<wire::Grant>(1).size(), 1u);
}

// A pause or a limit that comes while the worker makes the session must outlive lanewayd.
TEST_F(SessionLinkTest, ARecordThatChangesWhileTheWorkerMakesTheSessionGoesAfterIt) {
  Session* const session = Admitted(1);
  for (const Phase phase : {Phase::kAttaching, Phase::kEntering}) {
    session->phase = phase;
    session->link->Send(*session, session->record);
    session->link->Send(*session, wire::Grant{1, 7});
  }
  session->phase = Phase::kWaiting;
  session->link->Send(*session, session->record);
  EXPECT_EQ(children_.SentTo<wire::SessionRecord>(1).size(), 2u);
  EXPECT_TRUE(children_.SentTo<wire::Grant>(1).empty());
}

TEST_F(SessionLinkTest, AProgramHearsOverItsSocketWhatExistsInItsDirection) {
  Session* const session = AddProgram(1);
  session->link->Send(*session, wire::Grant{1, 7});
  EXPECT_TRUE(Hears());
  session->link->Send(*session, wire::DetachSession{1});
  EXPECT_FALSE(Hears());
  EXPECT_TRUE(children_.SentTo<wire::Grant>(1).empty());
}

TEST_F(SessionLinkTest, OnlyAProgramNumbersDevicesAsItSeesThem) {
  Session* const program = AddProgram(1);
  Session* const session = Admitted(2);
  for (Session* const one : {program, session}) {
    one->record.job.scheduling.device_count = 1;
    one->record.job.scheduling.devices[0] = 3;
  }
  EXPECT_EQ(program->link->DeviceMeant(*program, 0), 3u);
  EXPECT_EQ(program->link->DeviceMeant(*program, 5), 5u);
  EXPECT_EQ(session->link->DeviceMeant(*session, 0), 0u);
}

TEST_F(SessionLinkTest, TheKeeperIsToldOnlyOfAProgramsMemory) {
  Session* const program = AddProgram(1);
  program->link->OnMemoryCounted(*program);
  EXPECT_EQ(children_.ToldKeeper<wire::CountOutside>().size(), 1u);
  Session* const session = Admitted(2);
  session->link->OnMemoryCounted(*session);
  EXPECT_EQ(children_.ToldKeeper<wire::CountOutside>().size(), 1u);
}

TEST_F(SessionLinkTest, OnlyAProgramSendsAfterItsHello) {
  EXPECT_TRUE(in_process_.Receive(AddProgram(1)));
  EXPECT_FALSE(worker_link_.Receive(Admitted(2)));
}

// The client of a worker's session can write its own page, and is not believed.
TEST_F(SessionLinkTest, ProgressIsTheWorkersWordOrTheProgramsOwn) {
  Session* const program = AddProgram(1);
  Session* const session = Admitted(2);
  for (Session* const one : {program, session}) one->page->progress.iterations = 7;
  EXPECT_EQ(program->link->ProgressOf(*program).iterations.load(), 7u);
  EXPECT_EQ(session->link->ProgressOf(*session).iterations.load(), 0u);
}

TEST_F(SessionLinkTest, AContainedSessionGetsAWorkerOfItsOwnOnce) {
  Session* const session = Admitted(1);
  EXPECT_TRUE(worker_link_.EnsureWorker(session).ok());
  EXPECT_EQ(children_.workers().size(), 1u) << "the shared one";
  session->record.contained = 1;
  EXPECT_TRUE(worker_link_.EnsureWorker(session).ok());
  EXPECT_TRUE(worker_link_.EnsureWorker(session).ok());
  EXPECT_EQ(children_.workers().size(), 2u);
  EXPECT_TRUE(children_.workers().at(session->own_worker).own);
}

}  // namespace
}  // namespace control
