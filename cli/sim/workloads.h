// The workloads of Salus (papers: Salus, Table A.1): 15 models in 45 batch sizes.
//
// Iteration time and peak memory of the 33 image classifiers are what the authors measured on a
// P100; for the other 12 there are no published figures, and ours are assumptions. The paper tells
// persistent memory for the two ends of the range; between them we interpolate by the peak. How
// much of an iteration the device computes is calibrated by the paper's Figure 2.10 alone: 300
// times resnet50_50 gain a factor 1.07 from packing, superres_128 gains 2.38. All classifiers take
// the first figure, superres the second. Of vae, speech and seq2seq nobody published any: they
// compute something between the two. Thread safety: constants.
#pragma once

#include <string>
#include <vector>

#include "cli/sim/job.h"

namespace sim {

// P100: memory that jobs may use, of 16 GB.
inline constexpr double kSalusDeviceMib = 16280;
inline constexpr double kClassifierBusyPercent = 93;
inline constexpr double kSuperresBusyPercent = 40;

struct Workload {
  const char* name;
  double iteration_ms;
  double peak_mib;
  double busy_percent;  // 0: not known
};

const std::vector<Workload>& SalusWorkloads();
const Workload* FindWorkload(const std::string& name);

double PersistentMib(const Workload& workload);

// A run of about this long, alone on the device: whole iterations, at least one. Where it is not
// known how much it computes, the middle is taken.
Job JobOf(const Workload& workload, double seconds);

}  // namespace sim
