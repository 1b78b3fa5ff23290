// Sessions for unit tests of lanewayd's parts: records with real pages, and no process behind them.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>

#include "daemon/control/session_table.h"
#include "ipc/session_file.h"

namespace control {

// A running session of worker 1. Its page is that of a fresh session file.
inline Session* AddRunning(SessionTable* sessions, uint64_t id, uint64_t lane = 0,
                           uint32_t worker = 1) {
  ipc::control::SessionRecord record;
  record.session_id = id;
  record.job.number = 10 * id;
  ipc::control::SetText(record.program, "program");
  Session* const session = sessions->Add(record);
  session->session_fd = ipc::UniqueFd(*ipc::SessionFile::Create(id, 0));
  session->page = common::SessionPageMap(session->session_fd.get());
  session->phase = Phase::kRunning;
  session->worker = worker;
  session->lane = lane;
  return session;
}

}  // namespace control
