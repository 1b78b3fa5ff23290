// What was served: iterations, busy time, virtual time, and how much lanes slow each other down.
#include <algorithm>
#include <utility>

#include "scheduler/core.h"

namespace scheduler {
namespace {

constexpr int64_t kLearnedIterations = 3;  // after which an estimate of memory is not needed
constexpr double kNewShare = 0.2;          // of a new sample in an average

// How long an iteration takes beside fewer lanes than now: its own, or what earlier runs took
// alone.
struct Reference {
  int64_t us = 0;    // 0: not known
  double share = 1;  // of the speed alone, at which it was measured
};

Reference ReferenceOf(const Session& session, const Device& device, size_t lanes) {
  if (lanes == 1) return {session.reference_us};
  const bool alone = session.reference_lanes == 1;
  if (!alone && session.about.estimate.iteration_us > 0) {
    return {session.about.estimate.iteration_us};
  }
  if (session.reference_lanes == 0 || session.reference_lanes >= lanes) return {};
  const Speed& then = device.speed[session.reference_lanes];
  return {session.reference_us, alone || then.at_us == 0 ? 1 : then.share};
}

void Try(Device* device, size_t lanes, int64_t now_us) {
  if (device->speed.size() > lanes) return;
  device->speed.resize(lanes + 1);
  device->tried_us = now_us;
}

// A session that comes to no boundary for so long, or never runs undisturbed, shows nothing: so
// many lanes count as tried.
void NoteTried(Core* core, const Session& session) {
  constexpr int64_t kTriedUs = 2'000'000;
  Device* const device = core->DeviceOf(session);
  if (core->now_us - device->tried_us >= kTriedUs)
    Try(device, std::max<size_t>(1, device->running), core->now_us);
}

// What lanes do to each other shows where their number changes for somebody who goes on.
void LearnSpeed(Core* core, Session* session, int64_t each_us) {
  Device* const device = core->DeviceOf(*session);
  const size_t lanes = std::max<size_t>(1, device->running);
  Try(device, lanes, core->now_us);
  if (session->reference_lanes == 0 || lanes < session->reference_lanes ||
      (lanes == session->reference_lanes && each_us < session->reference_us)) {
    session->reference_us = each_us;
    session->reference_lanes = lanes;
  }
  const Reference reference = ReferenceOf(*session, *device, lanes);
  if (reference.us == 0) return;
  const double slower = static_cast<double>(reference.us) / static_cast<double>(each_us);
  const double share = reference.share * std::min(1.0, slower);
  Speed& speed = device->speed[lanes];
  speed.share = speed.at_us == 0 ? share : speed.share * (1 - kNewShare) + share * kNewShare;
  speed.at_us = std::max<int64_t>(1, core->now_us);
}

void Learn(Core* core, Session* session, const Progress& event, int64_t begin_us) {
  const int64_t each_us = event.busy_us / event.iterations;
  session->iteration_us = session->iteration_us == 0
                              ? each_us
                              : static_cast<int64_t>(session->iteration_us * (1 - kNewShare) +
                                                     static_cast<double>(each_us) * kNewShare);
  const bool steady = begin_us >= core->DeviceOf(*session)->running_since_us;
  if (each_us > 0 && steady) LearnSpeed(core, session, each_us);
}

// A session that comes to a lane starts level with the lane's least served session. Otherwise it
// would be owed the time for which it was not there.
void AdvanceFloor(Core* core, const Session& holder) {
  Lane* const lane = core->LaneOf(holder.lane);
  int64_t least_us = holder.virtual_us;
  if (!lane->waiting.empty()) {
    least_us = std::min(least_us, core->Find(lane->waiting.begin()->session)->virtual_us);
  }
  lane->virtual_floor_us = std::max(lane->virtual_floor_us, least_us);
}

// The same for users.
void AdvanceUserFloor(State* state) {
  int64_t least_us = kUnlimited;
  for (const std::pair<const uint32_t, User>& entry : state->users) {
    if (entry.second.active > 0) least_us = std::min(least_us, entry.second.virtual_us);
  }
  if (least_us != kUnlimited) state->user_floor_us = std::max(state->user_floor_us, least_us);
}

}  // namespace

void OnProgress(Core* core, Session* session, const Progress& event) {
  session->busy_us += event.busy_us;
  session->iterations_done += event.iterations;
  const int64_t begin_us =
      std::max(session->granted_us, std::exchange(session->progress_us, core->now_us));
  session->virtual_us += event.busy_us * 100 / std::max<int64_t>(1, session->about.weight);
  if (session->granted) AdvanceFloor(core, *session);
  User* const user = core->UserOf(*session);
  user->virtual_us += event.busy_us * 100 / std::max<int64_t>(1, user->weight);
  AdvanceUserFloor(core->state);
  if (event.iterations > 0) Learn(core, session, event, begin_us);
  NoteTried(core, *session);
  core->devices.insert(session->about.device);
  // It is known now, or goes on for longer than it did before: then it is another kind of run.
  const bool known = session->iterations_done >= kLearnedIterations ||
                     session->busy_us > session->about.estimate.total_us;
  if (known && session->place.residence == Residence::kDevice) ForgetEstimate(core, session);
  if (session->turn.session != 0) List(core, session);  // told late: its rank is another
}

}  // namespace scheduler
