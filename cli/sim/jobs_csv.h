// Jobs as comma-separated values: a head line that names the columns in any order, a line per job.
//
//   arrival_s, iterations, iteration_ms                       required
//   name, command, user, busy_percent, interference_percent,
//   persistent_mib, ephemeral_mib, priority, weight, deadline_ms,
//   declared_iterations, request_ms                           optional (job.h says what each means)
//
// Empty cells take the default; lines that are empty or begin with # are comments; a cell with
// commas or quotes stands in double quotes, a quote within as two. Thread safety: stateless.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/sim/job.h"

namespace sim {

// In the file's order. InvalidArgument, one sentence that begins with "FILE:LINE:", for the first
// thing that is wrong; `file` is only for that.
absl::StatusOr<std::vector<Job>> ParseJobs(std::string_view text, const std::string& file);

// Reads `path`, "-" being standard input.
absl::StatusOr<std::vector<Job>> ReadJobs(const std::string& path);

// What ParseJobs reads back as the same jobs; `comment` becomes the first lines.
std::string JobsText(const std::vector<Job>& jobs, const std::string& comment);

}  // namespace sim
