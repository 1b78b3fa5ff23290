// Each policy's one instance, and what several policies share. Thread safety: immutable.
#pragma once

#include "scheduler/policy.h"

namespace scheduler {

const Policy* FifoPolicy();

}  // namespace scheduler
