#include "shim/measured_wait.h"

#include <sched.h>
#include <sys/resource.h>

#include <algorithm>

#include "ipc/calls/limits.h"

namespace shim {
namespace {

int64_t SwitchesOfThisThread() {
  rusage usage;
  return getrusage(RUSAGE_THREAD, &usage) == 0 ? usage.ru_nivcsw : 0;
}

}  // namespace

MeasuredWait::MeasuredWait(uint32_t slot, unsigned spin_us_min)
    : span_(ipc::TraceKind::kWait, slot),
      advice_(ThisThread().spin),
      begin_ns_(ipc::MonotonicNs()),
      spin_ns_(int64_t{std::max(spin_us_min, advice_.NextUs())} * 1000) {}

MeasuredWait::~MeasuredWait() {
  const int64_t took_us = (ipc::MonotonicNs() - begin_ns_) / 1000;
  advice_.OnEnd({took_us, switches_ >= 0 && SwitchesOfThisThread() != switches_});
}

bool MeasuredWait::EndRound(bool worker_needs_processor) {
  const int64_t spun_ns = ipc::MonotonicNs() - begin_ns_;
  if (spun_ns >= spin_ns_) return false;
  if (worker_needs_processor) {
    sched_yield();
    if (switches_ >= 0) switches_ = SwitchesOfThisThread();  // the worker is no disturbance
  } else if (spun_ns >= int64_t{ipc::limits::kSpinUs} * 1000) {
    GiveWay();
  }
  return true;
}

void MeasuredWait::GiveWay() {
  if (switches_ < 0) switches_ = SwitchesOfThisThread();
  sched_yield();
}

}  // namespace shim
