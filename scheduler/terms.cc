// What changes about a session while it runs: on which terms it is scheduled, and, before it has
// any memory, on which device.
#include <cassert>

#include "scheduler/core.h"

namespace scheduler {
namespace {

bool MayBePlaced(const Session& session) {
  return session.phase == Phase::kAdmitted && session.place.residence == Residence::kDevice &&
         session.need == Need::kNone && session.persistent_bytes == 0 && !session.uses_lane;
}

// Nothing of it is on its device any more: what earlier runs needed was expected there.
void LeaveDevice(Core* core, Session* session) {
  core->devices.insert(session->about.device);
  Unclaim(core, session);
  LeaveLane(core, session);
  session->promised_bytes = 0;
  session->ephemeral_bytes = 0;
  Account(core, session);
}

}  // namespace

Device* Touch(Core* core, uint32_t device) {
  Device* const found = &core->state->devices[device];
  found->id = device;
  core->devices.insert(device);
  return found;
}

void On(Core* core, const TermsChanged& event) {
  Session* const session = core->Find(event.session);
  if (session == nullptr) return;
  session->about.priority = event.priority;
  session->about.weight = event.weight;
  session->about.deadline_us = event.deadline_us;
  core->devices.insert(session->about.device);
  // Where it waits, it waits in another place now.
  if (session->turn.session != 0) List(core, session);
  if (session->claim.session != 0) Claim(core, session);
}

void On(Core* core, const SessionPlaced& event) {
  Session* const session = core->Find(event.session);
  if (session == nullptr || session->about.device == event.device) return;
  if (!MayBePlaced(*session)) return;
  LeaveDevice(core, session);
  session->about.device = event.device;
  Touch(core, event.device);
  LaneChoice choice = FindLane(*core->state, *session, 0, 0);
  // All lanes are about to go, and no more are allowed: one more, which takes no memory.
  if (choice.kind == LaneChoice::kNone) choice = {LaneChoice::kNew, 0, 0};
  TakeLane(core, session, choice, 0, false);
  Account(core, session);
}

}  // namespace scheduler
