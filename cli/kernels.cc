#include "cli/kernels.h"

#include <cstdio>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "cli/job_work.h"
#include "cli/kernels_text.h"
#include "cli/table.h"
#include "ipc/job_options.h"

namespace cli {
namespace {

constexpr int64_t kImagesUs = 10'000'000;  // that a job has to tell of its modules

// A path with nothing but digits needs a directory in front: ./12.
std::optional<uint64_t> JobIn(const std::string& word) {
  uint64_t job = 0;
  return absl::SimpleAtoi(word, &job) ? std::optional(job) : std::nullopt;
}

// `count_us`: for how long launches are counted; 0: they are not.
absl::StatusOr<KernelsShown> ReportJob(Request request, uint64_t job, uint64_t count_us) {
  request.id = job;
  absl::StatusOr<JobKernels> kernels =
      FetchKernels(request, kImagesUs, static_cast<int64_t>(count_us));
  if (!kernels.ok()) return kernels.status();
  const size_t missing = std::erase_if(kernels->images, [](const auto& entry) {
    return !entry.second.complete || entry.second.bytes.empty();
  });
  if (missing != 0) {
    Say(0, absl::StrCat(missing, " modules of job ", job,
                        " did not come: too large, not kept any more, or too late"));
  }
  KernelsShown shown = KernelsOf(kernels->images, kernels->launches, count_us != 0);
  shown.counted_ns = kernels->counted_ns;
  return shown;
}

absl::StatusOr<KernelsShown> ReportFile(const Request& request) {
  if (!request.watched.period.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--for counts the launches of a running job, and ", Printable(request.path), " is none"));
  }
  absl::StatusOr<replay::FileReport> file = replay::ReportKernelsUntrusted(request.path);
  if (!file.ok()) return file.status();
  KernelsShown shown;
  shown.file = *std::move(file);
  return shown;
}

}  // namespace

int Kernels(const Request& request) {
  const std::optional<uint64_t> job = JobIn(request.path);
  const std::optional<uint64_t> count_us = request.watched.period.empty()
                                               ? std::optional<uint64_t>(0)
                                               : ipc::ParseDurationUs(request.watched.period);
  if (!count_us.has_value()) {
    return Say(2, absl::StrCat("--for takes a time such as 2s or 500ms, not ",
                               Printable(request.watched.period)));
  }
  const absl::StatusOr<KernelsShown> shown =
      job.has_value() ? ReportJob(request, *job, *count_us) : ReportFile(request);
  if (!shown.ok()) return Say(1, std::string(shown.status().message()));
  if (request.json) {
    std::printf("%s\n", KernelsJson(*shown).c_str());
    return 0;
  }
  std::fputs(KernelsText(*shown).c_str(), stdout);
  for (const std::string& why : shown->file.refused) Say(0, Printable(why));
  if (shown->file.machine_code > 0) {
    Say(0, absl::StrCat(shown->file.machine_code, " images hold machine code alone: not known"));
  }
  std::printf("%s\n", KnownText(*shown).c_str());
  return 0;
}

}  // namespace cli
