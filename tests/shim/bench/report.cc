#include "tests/shim/bench/report.h"

#include <algorithm>
#include <cstdio>

namespace bench {
namespace {

bool Meets(const Figure& figure, double value) {
  return figure.higher_is_better ? value >= figure.bar : value <= figure.bar;
}

std::pair<double, double> Extremes(const std::vector<double>& samples) {
  if (samples.empty()) return {0, 0};
  const auto [low, high] = std::minmax_element(samples.begin(), samples.end());
  return {*low, *high};
}

// The median decides; when it misses and the best round does not, something else used the machine.
Verdict Judge(const Figure& figure) {
  if (figure.samples.empty()) return Verdict::kNotMeasured;
  if (figure.bar == 0) return Verdict::kReported;
  if (Meets(figure, Median(figure.samples))) return Verdict::kMet;
  const auto [low, high] = Extremes(figure.samples);
  return Meets(figure, figure.higher_is_better ? high : low) ? Verdict::kNoisy : Verdict::kMissed;
}

const char* Word(Verdict verdict) {
  switch (verdict) {
    case Verdict::kMet:
      return "met";
    case Verdict::kMissed:
      return "MISSED";
    case Verdict::kNoisy:
      return "too noisy";
    case Verdict::kReported:
      return "-";
    case Verdict::kNotMeasured:
      return "not measured";
  }
  return "";
}

}  // namespace

double Median(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  return samples.empty() ? 0 : samples[samples.size() / 2];
}

void Report::Add(Figure figure) { figures_.push_back(std::move(figure)); }

void Report::Note(std::string sentence) { notes_.push_back(std::move(sentence)); }

void Report::Print(bool as_json) const {
  if (!as_json)
    std::printf("%-44s %10s %10s %10s  %-6s %12s  %s\n", "", "min", "median", "max", "", "bar",
                "verdict");
  if (as_json) std::printf("{\"figures\": [");
  for (const Figure& figure : figures_) {
    const double median = Median(figure.samples);
    const auto [low, high] = Extremes(figure.samples);
    const char* const word = Word(Judge(figure));
    if (as_json) {
      std::printf(
          "%s\n  {\"name\": \"%s\", \"unit\": \"%s\", \"min\": %g, \"median\": %g, \"max\": %g, "
          "\"bar\": %g, \"verdict\": \"%s\"}",
          &figure == figures_.data() ? "" : ",", figure.name.c_str(), figure.unit.c_str(), low,
          median, high, figure.bar, word);
      continue;
    }
    char bar[32] = "-";
    if (figure.bar != 0) {
      std::snprintf(bar, sizeof bar, "%s %g", figure.higher_is_better ? ">=" : "<=", figure.bar);
    }
    std::printf("%-44s %10.4g %10.4g %10.4g  %-6s %12s  %s\n", figure.name.c_str(), low, median,
                high, figure.unit.c_str(), bar, word);
  }
  if (as_json) std::printf("\n]}\n");
  for (const std::string& note : notes_)
    std::fprintf(as_json ? stderr : stdout, "%s\n", note.c_str());
}

int Report::exit_code() const {
  int code = 0;
  for (const Figure& figure : figures_) {
    const Verdict verdict = Judge(figure);
    if (verdict == Verdict::kMissed) return 1;
    if (verdict == Verdict::kNoisy) code = 2;
  }
  return code;
}

}  // namespace bench
