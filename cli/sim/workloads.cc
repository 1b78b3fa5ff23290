#include "cli/sim/workloads.h"

#include <algorithm>
#include <cmath>

namespace sim {
namespace {

// The ends of the range of persistent memory that the paper tells (section 2.2.1), with the peaks
// of the two workloads that it tells them of: googlenet_25 and resnet152_75.
constexpr double kPersistentLow = 110.9;
constexpr double kPersistentHigh = 822.2;
constexpr double kPeakLow = 743;
constexpr double kPeakHigh = 12718;
constexpr double kPersistentOfTiny = 22.0 / 35;  // vae, of which average and peak are told

}  // namespace

const std::vector<Workload>& SalusWorkloads() {
  static const std::vector<Workload>* const workloads = new std::vector<Workload>{
      // Classification: measured on a P100 (Salus repository, tests/workloads.csv).
      {"vgg11_25", 173, 6615, kClassifierBusyPercent},
      {"vgg11_50", 305, 9738, kClassifierBusyPercent},
      {"vgg11_100", 545, 12810, kClassifierBusyPercent},
      {"vgg16_25", 301, 6614, kClassifierBusyPercent},
      {"vgg16_50", 546, 9738, kClassifierBusyPercent},
      {"vgg16_100", 999, 12962, kClassifierBusyPercent},
      {"vgg19_25", 357, 6614, kClassifierBusyPercent},
      {"vgg19_50", 644, 9738, kClassifierBusyPercent},
      {"vgg19_100", 1168, 12550, kClassifierBusyPercent},
      {"resnet50_25", 123, 2104, kClassifierBusyPercent},
      {"resnet50_50", 227, 4006, kClassifierBusyPercent},
      {"resnet50_75", 325, 5907, kClassifierBusyPercent},
      {"resnet101_25", 214, 3225, kClassifierBusyPercent},
      {"resnet101_50", 378, 6103, kClassifierBusyPercent},
      {"resnet101_75", 603, 8981, kClassifierBusyPercent},
      {"resnet152_25", 307, 4547, kClassifierBusyPercent},
      {"resnet152_50", 535, 8634, kClassifierBusyPercent},
      {"resnet152_75", 787, 12718, kClassifierBusyPercent},
      {"googlenet_25", 59, 743, kClassifierBusyPercent},
      {"googlenet_50", 100, 1399, kClassifierBusyPercent},
      {"googlenet_100", 180, 2531, kClassifierBusyPercent},
      {"alexnet_25", 58, 631, kClassifierBusyPercent},
      {"alexnet_50", 57, 1063, kClassifierBusyPercent},
      {"alexnet_100", 60, 1240, kClassifierBusyPercent},
      {"overfeat_25", 131, 3255, kClassifierBusyPercent},
      {"overfeat_50", 141, 3416, kClassifierBusyPercent},
      {"overfeat_100", 149, 6184, kClassifierBusyPercent},
      {"inception3_25", 198, 2479, kClassifierBusyPercent},
      {"inception3_50", 358, 4794, kClassifierBusyPercent},
      {"inception3_100", 683, 9390, kClassifierBusyPercent},
      {"inception4_25", 410, 4435, kClassifierBusyPercent},
      {"inception4_50", 729, 8529, kClassifierBusyPercent},
      {"inception4_75", 1056, 12611, kClassifierBusyPercent},
      // Assumed: times and memory of these are not published.
      {"vae_64", 12, 35, 0},
      {"vae_128", 14, 60, 0},
      {"vae_256", 18, 110, 0},
      {"superres_32", 40, 600, kSuperresBusyPercent},
      {"superres_64", 70, 1100, kSuperresBusyPercent},
      {"superres_128", 130, 2000, kSuperresBusyPercent},
      {"speech_25", 300, 2000, 0},
      {"speech_50", 450, 3500, 0},
      {"speech_75", 600, 5000, 0},
      {"seq2seq_small", 60, 500, 0},
      {"seq2seq_medium", 150, 1500, 0},
      {"seq2seq_large", 350, 3500, 0},
  };
  return *workloads;
}

const Workload* FindWorkload(const std::string& name) {
  for (const Workload& workload : SalusWorkloads()) {
    if (name == workload.name) return &workload;
  }
  return nullptr;
}

double PersistentMib(const Workload& workload) {
  const double share = (workload.peak_mib - kPeakLow) / (kPeakHigh - kPeakLow);
  const double between = kPersistentLow + share * (kPersistentHigh - kPersistentLow);
  return std::min({between, kPersistentHigh, kPersistentOfTiny * workload.peak_mib});
}

Job JobOf(const Workload& workload, double seconds) {
  Job job;
  job.name = workload.name;
  job.command = workload.name;
  job.iteration_ms = workload.iteration_ms;
  job.iterations =
      std::max(int64_t{1}, static_cast<int64_t>(seconds * 1e3 / workload.iteration_ms + 0.5));
  const double middle = (kSuperresBusyPercent + kClassifierBusyPercent) / 2;
  job.busy_percent = workload.busy_percent > 0 ? workload.busy_percent : middle;
  job.persistent_mib = std::round(PersistentMib(workload) * 10) / 10;
  job.ephemeral_mib = std::round((workload.peak_mib - job.persistent_mib) * 10) / 10;
  return job;
}

}  // namespace sim
