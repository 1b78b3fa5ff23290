#include "cli/kernels.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/job_work.h"
#include "cli/table.h"

namespace cli {
namespace {

constexpr size_t kRangesShown = 2;
constexpr int64_t kImagesUs = 10'000'000;  // that a job has to tell of its modules

std::string RangesText(const replay::TouchReport& touch) {
  if (touch.ranges.empty()) return "anywhere in the allocation";
  const size_t shown = std::min(touch.ranges.size(), kRangesShown);
  const auto end = touch.ranges.begin() + static_cast<ptrdiff_t>(shown);
  const std::string text = absl::StrJoin(touch.ranges.begin(), end, "; ");
  const size_t rest = touch.ranges.size() - shown;
  return rest == 0 ? text : absl::StrCat(text, "; ", rest, " more");
}

nlohmann::json JsonOf(const replay::KernelReport& kernel) {
  nlohmann::json object = {{"name", kernel.name}, {"known", kernel.reason.empty()}};
  if (!kernel.reason.empty()) {
    object["reason"] = kernel.reason;
    return object;
  }
  object["touches"] = nlohmann::json::array();
  for (const replay::TouchReport& touch : kernel.touches) {
    nlohmann::json row = {{"name", touch.name}, {"uses", touch.uses}, {"escapes", touch.escapes}};
    if (!touch.is_variable) row["offset"] = touch.offset;
    if (!touch.ranges.empty()) row["ranges"] = touch.ranges;
    object["touches"].push_back(std::move(row));
  }
  return object;
}

}  // namespace

std::string KernelText(const replay::KernelReport& kernel) {
  std::string text = absl::StrCat(Printable(replay::ReadableKernelName(kernel.name)), "\n");
  if (!kernel.reason.empty()) return absl::StrCat(text, "  not known: ", kernel.reason, "\n");
  if (kernel.touches.empty()) return absl::StrCat(text, "  touches no global memory\n");
  Rows rows;
  for (const replay::TouchReport& touch : kernel.touches) {
    rows.push_back(
        {absl::StrCat("  ", Printable(touch.name)),
         absl::StrCat(absl::StrJoin(touch.uses, ", "), touch.escapes ? ", stores the address" : ""),
         RangesText(touch)});
  }
  return absl::StrCat(text, Table(rows, 3));
}

std::string KernelsJson(const replay::FileReport& file) {
  nlohmann::json object = {{"machine_code_images", file.machine_code}, {"refused", file.refused}};
  object["kernels"] = nlohmann::json::array();
  for (const replay::KernelReport& kernel : file.kernels)
    object["kernels"].push_back(JsonOf(kernel));
  return object.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
}

namespace {

// A path with nothing but digits needs a directory in front: ./12.
std::optional<uint64_t> JobIn(const std::string& word) {
  uint64_t job = 0;
  return absl::SimpleAtoi(word, &job) ? std::optional(job) : std::nullopt;
}

absl::StatusOr<replay::FileReport> ReportJob(Request request, uint64_t job) {
  request.id = job;
  const absl::StatusOr<graph::Images> images = FetchImages(request, kImagesUs);
  if (!images.ok()) return images.status();
  replay::FileReport report;
  size_t missing = 0;
  for (const auto& [hash, image] : *images) {
    if (image.complete && !image.bytes.empty()) {
      replay::AddImageReportUntrusted(std::as_bytes(std::span(image.bytes)), &report);
    } else {
      ++missing;
    }
  }
  if (missing != 0) {
    Say(0, absl::StrCat(missing, " modules of job ", job,
                        " did not come: too large, not kept any more, or too late"));
  }
  return report;
}

}  // namespace

int Kernels(const Request& request) {
  const std::optional<uint64_t> job = JobIn(request.path);
  const absl::StatusOr<replay::FileReport> file =
      job.has_value() ? ReportJob(request, *job) : replay::ReportKernelsUntrusted(request.path);
  if (!file.ok()) return Say(1, std::string(file.status().message()));
  if (request.json) {
    std::printf("%s\n", KernelsJson(*file).c_str());
    return 0;
  }
  size_t known = 0;
  for (const replay::KernelReport& kernel : file->kernels) {
    std::fputs(KernelText(kernel).c_str(), stdout);
    known += kernel.reason.empty() ? 1 : 0;
  }
  for (const std::string& why : file->refused) Say(0, Printable(why));
  if (file->machine_code > 0) {
    Say(0, absl::StrCat(file->machine_code, " images hold machine code alone: not known"));
  }
  std::printf("known: %zu of %zu kernels\n", known, file->kernels.size());
  return 0;
}

}  // namespace cli
