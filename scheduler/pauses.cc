// The orders of people for a session: to stop, to leave the device, to go on.
#include "scheduler/core.h"
#include "scheduler/scheduler.h"

namespace scheduler {

// A session that holds its lane gives it up at a boundary of the session. The memory of a session
// that is evicted leaves the device then, too.
void Stop(Core* core, Session* session, Pause pause) {
  session->pause = session->about.fixed ? Pause::kPaused : pause;
  core->devices.insert(session->about.device);
  List(core, session);
  if (session->phase == Phase::kAdmitted) Claim(core, session);
  if (session->place.residence != Residence::kDevice || session->phase != Phase::kAdmitted) return;
  LeaveIfEvicted(core, session);
  if (session->granted && session->place.residence == Residence::kDevice) {
    RevokeHolder(core, core->LaneOf(session->lane), true);
  }
}

void EndDismissal(Session* session) {
  if (session->pause == Pause::kDismissed) session->pause = Pause::kNone;
}

void On(Core* core, const Paused& event) {
  Session* const session = core->Find(event.session);
  if (session != nullptr) Stop(core, session, event.swap_out ? Pause::kEvicted : Pause::kPaused);
}

void On(Core* core, const Resumed& event) {
  Session* const session = core->Find(event.session);
  if (session == nullptr) return;
  session->pause = Pause::kNone;
  core->devices.insert(session->about.device);
  List(core, session);
  Claim(core, session);
}

void On(Core* core, const Dismissed& event) {
  Session* const session = core->Find(event.session);
  if (session == nullptr || session->paused() || !MayLeave(*core->state, *session)) return;
  Stop(core, session, Pause::kDismissed);
}

}  // namespace scheduler
