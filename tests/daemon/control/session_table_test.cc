#include "daemon/control/session_table.h"

#include <gtest/gtest.h>

#include <unistd.h>
#include "tests/daemon/control/testing.h"

#include "ipc/socket.h"

namespace control {
namespace {

TEST(SessionTableTest, ASessionThatEndsOrIsLostIsNotAlive) {
  SessionTable sessions;
  Session* const session = sessions.Add({.session_id = 1}, AnyLink());
  session->fds.process = *ipc::OpenPidfd(getpid());
  session->phase = Phase::kRunning;
  EXPECT_EQ(sessions.CountAlive(), 1u);
  session->phase = Phase::kQueued;
  EXPECT_EQ(sessions.CountAlive(), 1u);
  // Its program may run on: it gave the session up, or the worker did not take it.
  session->phase = Phase::kEnding;
  EXPECT_EQ(sessions.CountAlive(), 0u);
  session->phase = Phase::kLost;
  EXPECT_EQ(sessions.CountAlive(), 0u);
}

TEST(SessionTableTest, EachSessionHasAddressesOfItsOwn) {
  SessionTable sessions;
  for (const uint64_t id : {1, 2, 3}) {
    sessions.TakeSlot(sessions.Add({.session_id = id}, AnyLink()));
    EXPECT_EQ(sessions.Find(id)->record.slot, id - 1);
  }
  sessions.Remove(2);
  Session* const next = sessions.Add({.session_id = 4}, AnyLink());
  sessions.TakeSlot(next);
  EXPECT_EQ(next->record.slot, 1u);
}

}  // namespace
}  // namespace control
