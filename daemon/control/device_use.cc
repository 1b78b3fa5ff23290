#include "daemon/control/device_use.h"

#include <algorithm>
#include <utility>

namespace control {

void DeviceUse::Add(const Flags& busy, int64_t us) {
  for (size_t device = 0; device < busy.size(); ++device)
    if (busy[device]) busy_us_[device] += us;
}

void DeviceUse::EndWindow() {
  for (size_t device = 0; device < busy_us_.size(); ++device)
    percent_[device] = static_cast<unsigned>(std::exchange(busy_us_[device], 0) * 100 / kWindowUs);
  began_us_ += kWindowUs;
  seen_us_ = began_us_;
}

void DeviceUse::Pass(const scheduler::State& state, int64_t now_us) {
  Flags busy = {};
  for (const std::pair<const scheduler::SessionId, scheduler::Session>& entry : state.sessions) {
    const scheduler::Session& session = entry.second;
    if (session.about.device < busy.size() && session.progressing() && session.runnable)
      busy[session.about.device] = true;
  }
  if (began_us_ == 0) began_us_ = seen_us_ = now_us;
  // Of windows that passed without an event the last one alone is asked for.
  if (const int64_t windows = (now_us - began_us_) / kWindowUs; windows > 2) {
    began_us_ += (windows - 2) * kWindowUs;
    seen_us_ = began_us_;
    busy_us_ = {};
  }
  while (now_us - began_us_ >= kWindowUs) {
    Add(busy, began_us_ + kWindowUs - seen_us_);
    EndWindow();
  }
  Add(busy, std::max<int64_t>(now_us - seen_us_, 0));
  seen_us_ = std::max(seen_us_, now_us);
}

unsigned DeviceUse::PercentOf(uint32_t device) const {
  return device < percent_.size() ? percent_[device] : 0;
}

}  // namespace control
