// The time that a step of an engine takes, by a measured table.
//
// The table is comma-separated: a head line `kind,size,ms`, then rows. Lines that are empty or
// begin with # are comments.
//   step,B,MS     one token each of B answers
//   prompt,N,MS   prompts of N tokens in all
// Between two rows times are interpolated. Beyond the last row they grow as between the last two,
// and never fall.
// Prompts below the first row are interpolated down to a step of one token. The rows
// of a step share one reading of the weights (selective batching: Orca, section 4.2). So a step
// with prompts and answers takes the time of its prompts, plus the difference between a step of its
// answers and a step of one answer. Thread safety: immutable.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "scheduler/batching/iteration/event.h"

namespace sim::serving {

class Costs {
 public:
  // InvalidArgument, one sentence that begins with "FILE:LINE:"; `file` is only for that.
  static absl::StatusOr<Costs> Parse(std::string_view text, const std::string& file);
  // A file of the above.
  static absl::StatusOr<Costs> Read(const std::string& path);

  // On an engine of one stage.
  double StepMs(const scheduler::batching::iteration::Step& step) const;

 private:
  using Points = std::vector<std::pair<double, double>>;  // size and ms, by size
  static double At(const Points& points, double size);

  Points steps_;
  Points prompts_;
};

// The text of a file; "-" is standard input.
absl::StatusOr<std::string> ReadText(const std::string& path);

}  // namespace sim::serving
