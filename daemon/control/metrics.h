// The daemon's figures in Prometheus's text format. Pure. Thread safety: stateless.
#pragma once

#include <cstdint>
#include <string>

#include "daemon/control/top_snapshot.h"

namespace control {

// `faults`: since the daemon began.
std::string MetricsText(const TopInput& input, uint64_t faults, const Journal& journal);

}  // namespace control
