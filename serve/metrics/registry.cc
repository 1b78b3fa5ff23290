#include "serve/metrics/registry.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstdio>

#include "absl/strings/str_cat.h"

namespace serve::metrics {
namespace {

std::string Number(double value) {
  if (value == std::floor(value) && std::fabs(value) < 1e15)
    return absl::StrCat(static_cast<int64_t>(value));
  char text[40];
  std::snprintf(text, sizeof text, "%.17g", value);
  for (int digits = 6; digits < 17; ++digits) {
    char shorter[40];
    std::snprintf(shorter, sizeof shorter, "%.*g", digits, value);
    if (std::strtod(shorter, nullptr) == value) return shorter;
  }
  return text;
}

std::string Escaped(std::string_view text, bool is_label) {
  std::string result;
  for (const char c : text) {
    if (c == '\n') {
      result += "\\n";
    } else if (c == '\\' || (is_label && c == '"')) {
      result += '\\';
      result += c;
    } else {
      result += c;
    }
  }
  return result;
}

std::string TextOf(const Labels& labels) {
  std::string text;
  for (const auto& [name, value] : labels)
    absl::StrAppend(&text, text.empty() ? "" : ",", name, "=\"", Escaped(value, true), "\"");
  return text;
}

std::string Braced(const std::string& labels) {
  return labels.empty() ? "" : absl::StrCat("{", labels, "}");
}

std::string TextOf(const std::string& name, const std::string& labels, const Histogram& histogram) {
  std::string text;
  const std::string before = labels.empty() ? "" : labels + ",";
  uint64_t below = 0;
  for (size_t i = 0; i < histogram.counts().size(); ++i) {
    below += histogram.counts()[i];
    const std::string bound =
        i < histogram.bounds().size() ? Number(histogram.bounds()[i]) : "+Inf";
    absl::StrAppend(&text, name, "_bucket{", before, "le=\"", bound, "\"} ", below, "\n");
  }
  absl::StrAppend(&text, name, "_sum", Braced(labels), " ", Number(histogram.sum()), "\n");
  absl::StrAppend(&text, name, "_count", Braced(labels), " ", below, "\n");
  return text;
}

}  // namespace

Histogram::Histogram(std::vector<double> bounds)
    : bounds_(std::move(bounds)), counts_(bounds_.size() + 1) {
  assert(std::is_sorted(bounds_.begin(), bounds_.end()));
}

void Histogram::Observe(double value) {
  const auto bound = std::lower_bound(bounds_.begin(), bounds_.end(), value);
  ++counts_[static_cast<size_t>(bound - bounds_.begin())];
  sum_ += value;
}

std::vector<double> SecondsBounds() {
  return {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.25, 0.5,
          0.75,  1,      2.5,   5,    7.5,   10,   20,    40,  80,   160,  320};
}

Registry::Series* Registry::Find(const std::string& name, const std::string& help,
                                 const Labels& labels) {
  Family& family = families_.try_emplace(name, Family{help, {}}).first->second;
  return &family.series[TextOf(labels)];
}

Counter* Registry::AddCounter(const std::string& name, const std::string& help,
                              const Labels& labels) {
  Series* const series = Find(name, help, labels);
  if (series->index() != 0 || std::get<0>(*series) == nullptr)
    *series = std::make_unique<Counter>();
  return std::get<0>(*series).get();
}

Gauge* Registry::AddGauge(const std::string& name, const std::string& help, const Labels& labels) {
  Series* const series = Find(name, help, labels);
  if (series->index() != 1) *series = std::make_unique<Gauge>();
  return std::get<1>(*series).get();
}

Histogram* Registry::AddHistogram(const std::string& name, const std::string& help,
                                  std::vector<double> bounds, const Labels& labels) {
  Series* const series = Find(name, help, labels);
  if (series->index() != 2) *series = std::make_unique<Histogram>(std::move(bounds));
  return std::get<2>(*series).get();
}

std::string Registry::Text() const {
  constexpr const char* kKinds[] = {"counter", "gauge", "histogram"};
  std::string text;
  for (const auto& [name, family] : families_) {
    const size_t kind = family.series.begin()->second.index();
    absl::StrAppend(&text, "# HELP ", name, " ", Escaped(family.help, false), "\n# TYPE ", name,
                    " ", kKinds[kind], "\n");
    for (const auto& [labels, series] : family.series) {
      if (const auto* counter = std::get_if<0>(&series))
        absl::StrAppend(&text, name, Braced(labels), " ", Number((*counter)->value()), "\n");
      if (const auto* gauge = std::get_if<1>(&series))
        absl::StrAppend(&text, name, Braced(labels), " ", Number((*gauge)->value()), "\n");
      if (const auto* histogram = std::get_if<2>(&series))
        text += TextOf(name, labels, **histogram);
    }
  }
  return text;
}

}  // namespace serve::metrics
