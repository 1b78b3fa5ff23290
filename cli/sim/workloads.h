// The workloads of Salus (papers: Salus, Table A.1): 15 models in 45 batch sizes.
//
// Iteration time and peak memory of the 33 image classifiers are what the authors measured on a
// P100; for the other 12 there are no published figures, and ours are assumptions. The paper tells
// persistent memory for the two ends of the range; between them we interpolate by the peak. How
// much of an iteration the device computes is calibrated by the paper's Figure 2.10 alone: 300
// times resnet50_50 gain a factor 1.07 from packing, superres_128 gains 2.38. Classifiers take the
// first figure, all others the second. Thread safety: constants.
#pragma once

#include <string>
#include <vector>

#include "cli/sim/job.h"

namespace sim {

// P100: memory that jobs may use, of 16 GB.
inline constexpr double kSalusDeviceMib = 16280;
inline constexpr double kClassificationBusyPercent = 93;
inline constexpr double kOtherBusyPercent = 40;

struct Workload {
  const char* name;
  double iteration_ms;
  double peak_mib;
  bool classification;
};

const std::vector<Workload>& SalusWorkloads();
const Workload* FindWorkload(const std::string& name);

double PersistentMib(const Workload& workload);

// A run of about this long, alone on the device: whole iterations, at least one.
Job JobOf(const Workload& workload, double seconds);

}  // namespace sim
