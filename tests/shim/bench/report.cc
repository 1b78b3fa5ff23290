#include "tests/shim/bench/report.h"

#include <algorithm>
#include <cstdio>

namespace bench {
namespace {

constexpr double kQuiet = 1.1;  // A against A stays within 1 / kQuiet and kQuiet

bool Meets(const Figure& figure, double value) {
  return figure.higher_is_better ? value >= figure.bar : value <= figure.bar;
}

std::pair<double, double> Extremes(const std::vector<double>& samples) {
  if (samples.empty()) return {0, 0};
  const auto [low, high] = std::minmax_element(samples.begin(), samples.end());
  return {*low, *high};
}

// A against A: every other sample against the rest. Both halves measured the same thing, one
// moment apart; when they differ, something else used the machine.
bool Noisy(const std::vector<double>& samples) {
  std::vector<double> halves[2];
  for (size_t i = 0; i < samples.size(); ++i) halves[i % 2].push_back(samples[i]);
  if (halves[1].empty()) return false;
  const double ratio = Median(halves[0]) / Median(halves[1]);
  return !(ratio >= 1 / kQuiet && ratio <= kQuiet);
}

// The median decides, unless A against A says that it means nothing. What every sample meets is
// met on any machine.
Verdict Judge(const Figure& figure) {
  if (figure.samples.empty()) return Verdict::kNotMeasured;
  if (figure.bar == 0) return Verdict::kReported;
  const auto [low, high] = Extremes(figure.samples);
  if (Meets(figure, figure.higher_is_better ? low : high)) return Verdict::kMet;
  if (Noisy(figure.samples)) return Verdict::kNoisy;
  return Meets(figure, Median(figure.samples)) ? Verdict::kMet : Verdict::kMissed;
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

// A figure that is missing is not printed as 0, which would be read as a figure.
void PrintMissing(const Figure& figure, bool as_json, bool first) {
  const char* const word = Word(Verdict::kNotMeasured);
  if (as_json) {
    std::printf(
        "%s\n  {\"name\": \"%s\", \"unit\": \"%s\", \"min\": null, \"median\": null, "
        "\"max\": null, \"bar\": %g, \"verdict\": \"%s\"}",
        first ? "" : ",", figure.name.c_str(), figure.unit.c_str(), figure.bar, word);
    return;
  }
  std::printf("%-44s %10s %10s %10s  %-6s %12s  %s\n", figure.name.c_str(), "-", "-", "-",
              figure.unit.c_str(), "-", word);
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
    if (figure.samples.empty()) {
      PrintMissing(figure, as_json, &figure == figures_.data());
      continue;
    }
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
    if (verdict == Verdict::kNoisy || verdict == Verdict::kNotMeasured) code = 2;
  }
  return code;
}

}  // namespace bench
