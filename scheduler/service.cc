// What was served: iterations, busy time, virtual time, and how much lanes slow each other down.
#include <algorithm>

#include "scheduler/core.h"

namespace scheduler {
namespace {

constexpr int64_t kLearnedIterations = 3;  // after which an estimate of memory is not needed
constexpr double kNewShare = 0.2;          // of a new sample in an average

void Learn(Core* core, Session* session, const Progress& event) {
  const int64_t each = event.busy_us / event.iterations;
  session->iteration_us = session->iteration_us == 0
                              ? each
                              : static_cast<int64_t>(session->iteration_us * (1 - kNewShare) +
                                                     static_cast<double>(each) * kNewShare);
  if (session->iteration_best_us == 0 || each < session->iteration_best_us) {
    session->iteration_best_us = each;
  }
  if (each <= 0) return;
  Device* const device = core->DeviceOf(*session);
  const size_t lanes = device->running;
  if (device->speed.size() <= lanes) device->speed.resize(lanes + 1);
  Speed& speed = device->speed[lanes];
  const double share = static_cast<double>(session->iteration_best_us) / static_cast<double>(each);
  speed.share = speed.at_us == 0 ? share : speed.share * (1 - kNewShare) + share * kNewShare;
  speed.at_us = std::max<int64_t>(1, core->now_us);
}

// Who comes to a lane starts where the least served of it is, or it would be owed the time for
// which it was not there.
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
  session->progress_us = core->now_us;
  session->virtual_us += event.busy_us * 100 / std::max<int64_t>(1, session->about.weight);
  if (session->granted) AdvanceFloor(core, *session);
  User* const user = core->UserOf(*session);
  user->virtual_us += event.busy_us * 100 / std::max<int64_t>(1, user->weight);
  AdvanceUserFloor(core->state);
  if (event.iterations > 0) Learn(core, session, event);
  core->devices.insert(session->about.device);
  if (session->iterations_done >= kLearnedIterations && session->promised_bytes > 0 &&
      session->residence == Residence::kResident) {
    session->promised_bytes = 0;
    Account(core, session);
  }
  if (session->turn.session != 0) List(core, session);  // told late: its rank is another
}

}  // namespace scheduler
