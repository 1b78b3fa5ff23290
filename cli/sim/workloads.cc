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
      {"vgg11_25", 173, 6615, true},
      {"vgg11_50", 305, 9738, true},
      {"vgg11_100", 545, 12810, true},
      {"vgg16_25", 301, 6614, true},
      {"vgg16_50", 546, 9738, true},
      {"vgg16_100", 999, 12962, true},
      {"vgg19_25", 357, 6614, true},
      {"vgg19_50", 644, 9738, true},
      {"vgg19_100", 1168, 12550, true},
      {"resnet50_25", 123, 2104, true},
      {"resnet50_50", 227, 4006, true},
      {"resnet50_75", 325, 5907, true},
      {"resnet101_25", 214, 3225, true},
      {"resnet101_50", 378, 6103, true},
      {"resnet101_75", 603, 8981, true},
      {"resnet152_25", 307, 4547, true},
      {"resnet152_50", 535, 8634, true},
      {"resnet152_75", 787, 12718, true},
      {"googlenet_25", 59, 743, true},
      {"googlenet_50", 100, 1399, true},
      {"googlenet_100", 180, 2531, true},
      {"alexnet_25", 58, 631, true},
      {"alexnet_50", 57, 1063, true},
      {"alexnet_100", 60, 1240, true},
      {"overfeat_25", 131, 3255, true},
      {"overfeat_50", 141, 3416, true},
      {"overfeat_100", 149, 6184, true},
      {"inception3_25", 198, 2479, true},
      {"inception3_50", 358, 4794, true},
      {"inception3_100", 683, 9390, true},
      {"inception4_25", 410, 4435, true},
      {"inception4_50", 729, 8529, true},
      {"inception4_75", 1056, 12611, true},
      // Nobody published figures for these: assumed.
      {"vae_64", 12, 35, false},
      {"vae_128", 14, 60, false},
      {"vae_256", 18, 110, false},
      {"superres_32", 40, 600, false},
      {"superres_64", 70, 1100, false},
      {"superres_128", 130, 2000, false},
      {"speech_25", 300, 2000, false},
      {"speech_50", 450, 3500, false},
      {"speech_75", 600, 5000, false},
      {"seq2seq_small", 60, 500, false},
      {"seq2seq_medium", 150, 1500, false},
      {"seq2seq_large", 350, 3500, false},
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
  job.busy_percent = workload.classification ? kClassificationBusyPercent : kOtherBusyPercent;
  job.persistent_mib = std::round(PersistentMib(workload) * 10) / 10;
  job.ephemeral_mib = std::round((workload.peak_mib - job.persistent_mib) * 10) / 10;
  return job;
}

}  // namespace sim
