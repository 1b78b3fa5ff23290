// What launches cost through the driver interface: many of an empty kernel, and one that finds the
// device's threads asleep.
#pragma once

#include "tests/shim/bench/report.h"

namespace softgpu::testing {

// In a child process: the driver takes the window of addresses for itself. Throws
// std::runtime_error.
void MeasureLaunches(bench::Report* report);

}  // namespace softgpu::testing
