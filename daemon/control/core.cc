#include "daemon/control/core.h"

#include <unistd.h>

#include <algorithm>

#include "daemon/common/swap_file.h"

namespace control {
namespace {

constexpr int64_t kLanesMax = 64;
constexpr int64_t kOverstayS = 10;  // without a boundary, then it is reported

scheduler::Limits LimitsOf(const ipc::Options& options) {
  scheduler::Limits limits;
  limits.sessions_max = ipc::limits::kSessionsMax;
  limits.lanes_max = static_cast<unsigned>(std::clamp<int64_t>(options.lanes, 1, kLanesMax));
  limits.slice_us = std::max<int64_t>(1, options.slice_ms) * 1000;
  limits.swap_bytes = ipc::BytesOption(options.swap, common::DefaultSwapBytes());
  const int64_t overstay_s = options.max_iteration_s > 0 ? options.max_iteration_s : kOverstayS;
  limits.iteration_max_us = overstay_s * 1'000'000;
  return limits;
}

Now ReadClocksWith(const std::function<int64_t()>& now_us) {
  Now now = ReadClocks();
  now.us = now_us();
  return now;
}

}  // namespace

Core::Core(const ipc::Options& given, const Partners& partners, const Surroundings& around)
    : options(given),
      loop(partners.loop),
      children(partners.children),
      now_us(around.now_us),
      scheduler(options.policy, around.limits.value_or(LimitsOf(options)), loop, partners.executor,
                now_us),
      observers(around.state_dir, {loop, &sessions, &scheduler.state()},
                [this] { return ReadClocksWith(now_us); }),
      lanes({&sessions, &scheduler, children}),
      lifecycle({loop, &sessions, &scheduler, &observers, &lanes},
                {options.runtime_dir, options.kill_timeout_s * 1'000'000}, partners.listener),
      grants({&sessions, children, &scheduler, &observers, &lanes, &lifecycle},
             options.max_iteration_s, now_us) {}

void Core::TellCapacity() {
  const ipc::control::KeeperReady& keeper = children->keeper().description;
  for (uint32_t i = 0; i < keeper.device_count; ++i) {
    scheduler::CapacityChanged capacity;
    capacity.device = i;
    capacity.capacity_bytes = static_cast<int64_t>(keeper.devices[i].capacity_bytes);
    scheduler.Apply(capacity);
  }
  // One lanewayd serves the user that it runs as, and no other.
  scheduler::UserChanged user;
  user.user = geteuid();
  user.memory_bytes = ipc::BytesOption(options.user_memory, 0);
  user.sessions_max = static_cast<uint32_t>(options.user_sessions);
  scheduler.Apply(user);
}

}  // namespace control
