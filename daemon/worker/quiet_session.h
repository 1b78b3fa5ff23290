// Quiesce of a session, answered by the session's parts.
//
// Thread safety: the session's thread.
#pragma once

#include "daemon/worker/call_handlers/call_handlers.h"
#include "daemon/worker/holdings.h"
#include "daemon/worker/lane_executor.h"
#include "daemon/worker/session_handover.h"
#include "daemon/worker/session_loop.h"

namespace worker {

class QuietSession final : public Quiesce {
 public:
  // All outlive this object.
  struct Surroundings {
    Holdings* held;
    CallHandlers* handlers;
    LaneExecutor* turn;
    SessionLoop* loop;
  };
  explicit QuietSession(const Surroundings& around) : around_(around) {}

  bool PollFrees() override { return around_.held->frees.Poll(); }
  bool IsComplete() override {
    return !around_.loop->midway() && !around_.handlers->modules().HasPartOfAnImage() &&
           around_.turn->LaneIsEmpty() && around_.held->StreamsComplete();
  }
  void SaveForSuccessor() override { around_.handlers->streams().SaveTimes(); }
  bool MayLeave() override { return around_.turn->MayLeave(); }

 private:
  const Surroundings around_;
};

}  // namespace worker
