#include "cli/kernels_text.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "cli/graph/labels.h"
#include "cli/table.h"

namespace cli {
namespace {

constexpr size_t kRangesShown = 2;

std::string RangesText(const replay::TouchReport& touch) {
  if (touch.ranges.empty()) return "anywhere in the allocation";
  const size_t shown = std::min(touch.ranges.size(), kRangesShown);
  const auto end = touch.ranges.begin() + static_cast<ptrdiff_t>(shown);
  const std::string text = absl::StrJoin(touch.ranges.begin(), end, "; ");
  const size_t rest = touch.ranges.size() - shown;
  return rest == 0 ? text : absl::StrCat(text, "; ", rest, " more");
}

nlohmann::json JsonOf(const replay::KernelReport& kernel, const graph::Launches* launches) {
  nlohmann::json object = {{"name", kernel.name}, {"known", kernel.reason.empty()}};
  if (launches != nullptr) {
    object["launches"] = launches->count;
    object["device_ns"] = launches->time_ns;
  }
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

const graph::Launches* LaunchesAt(const KernelsShown& shown, size_t i) {
  return shown.launches.has_value() ? &(*shown.launches)[i] : nullptr;
}

// Launches of all kernels, and of those that are known.
struct Sums {
  uint64_t launches = 0;
  uint64_t known_launches = 0;
  size_t known_kernels = 0;
};

Sums SumsOf(const KernelsShown& shown) {
  Sums sums{.launches = shown.other.count};
  for (size_t i = 0; i < shown.file.kernels.size(); ++i) {
    const graph::Launches* const launches = LaunchesAt(shown, i);
    const uint64_t count = launches != nullptr ? launches->count : 0;
    sums.launches += count;
    if (!shown.file.kernels[i].reason.empty()) continue;
    ++sums.known_kernels;
    sums.known_launches += count;
  }
  return sums;
}

// The longest first.
void SortByTime(KernelsShown* shown) {
  const std::vector<graph::Launches> launches = *std::move(shown->launches);
  const std::vector<replay::KernelReport> kernels = std::move(shown->file.kernels);
  std::vector<size_t> order(kernels.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&launches](size_t a, size_t b) {
    return std::pair(launches[a].time_ns, launches[a].count) >
           std::pair(launches[b].time_ns, launches[b].count);
  });
  shown->launches.emplace();
  shown->file.kernels.clear();
  for (const size_t i : order) {
    shown->launches->push_back(launches[i]);
    shown->file.kernels.push_back(kernels[i]);
  }
}

}  // namespace

KernelsShown KernelsOf(const graph::Images& images, const graph::LaunchesByKernel& launches,
                       bool counted) {
  KernelsShown shown;
  std::vector<graph::Launches> counts;
  graph::LaunchesByKernel others = launches;
  for (const auto& [hash, image] : images) {
    if (image.bytes.empty()) continue;
    replay::AddImageReportUntrusted(std::as_bytes(std::span(image.bytes)), &shown.file);
    while (counts.size() < shown.file.kernels.size()) {
      const auto launched = others.extract({hash, shown.file.kernels[counts.size()].name});
      counts.push_back(launched ? launched.mapped() : graph::Launches());
    }
  }
  if (!counted) return shown;
  for (const auto& [kernel, rest] : others) shown.other.Add(rest);
  shown.launches = std::move(counts);
  SortByTime(&shown);
  return shown;
}

std::string KernelText(const replay::KernelReport& kernel, const graph::Launches* launches) {
  std::string text = Printable(replay::ReadableKernelName(kernel.name));
  if (launches != nullptr) {
    absl::StrAppend(&text, "  ", launches->count, " launches, ",
                    graph::DurationText(launches->time_ns), " of the device");
  }
  text += "\n";
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

std::string KernelsText(const KernelsShown& shown) {
  std::string text;
  for (size_t i = 0; i < shown.file.kernels.size(); ++i)
    text += KernelText(shown.file.kernels[i], LaunchesAt(shown, i));
  return text;
}

std::string KnownText(const KernelsShown& shown) {
  const Sums sums = SumsOf(shown);
  std::string text =
      absl::StrCat("known: ", sums.known_kernels, " of ", shown.file.kernels.size(), " kernels");
  if (shown.launches.has_value()) {
    absl::StrAppend(
        &text, absl::StrFormat(", %d of %d launches in %.1f s", sums.known_launches, sums.launches,
                               static_cast<double>(shown.counted_ns) / 1e9));
  }
  return text;
}

std::string KernelsJson(const KernelsShown& shown) {
  nlohmann::json object = {{"machine_code_images", shown.file.machine_code},
                           {"refused", shown.file.refused}};
  if (shown.launches.has_value()) {
    const Sums sums = SumsOf(shown);
    object["launches"] = sums.launches;
    object["known_launches"] = sums.known_launches;
    object["counted_ns"] = shown.counted_ns;
  }
  object["kernels"] = nlohmann::json::array();
  for (size_t i = 0; i < shown.file.kernels.size(); ++i)
    object["kernels"].push_back(JsonOf(shown.file.kernels[i], LaunchesAt(shown, i)));
  return object.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace cli
