#include "cli/sim/serving/costs.h"

#include <algorithm>
#include <fstream>
#include <iostream>
#include <iterator>
#include <sstream>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace sim::serving {

absl::StatusOr<std::string> ReadText(const std::string& path) {
  if (path == "-") return std::string(std::istreambuf_iterator<char>(std::cin), {});
  std::ifstream file(path);
  std::ostringstream text;
  if (file && file.peek() != std::ifstream::traits_type::eof()) text << file.rdbuf();
  if (!file && !file.eof()) return absl::InvalidArgumentError(absl::StrCat("cannot read ", path));
  return text.str();
}

absl::StatusOr<Costs> Costs::Parse(std::string_view text, const std::string& file) {
  Costs costs;
  int number = 0;
  bool head = false;
  for (const absl::string_view line :
       absl::StrSplit(absl::string_view(text.data(), text.size()), '\n')) {
    ++number;
    const absl::string_view stripped = absl::StripAsciiWhitespace(line);
    if (stripped.empty() || stripped[0] == '#') continue;
    const std::vector<std::string> cells = absl::StrSplit(stripped, ',');
    if (!head && stripped == "kind,size,ms") {
      head = true;
      continue;
    }
    double size = 0;
    double ms = 0;
    const bool row = head && cells.size() == 3 && (cells[0] == "step" || cells[0] == "prompt") &&
                     absl::SimpleAtod(cells[1], &size) && absl::SimpleAtod(cells[2], &ms);
    if (!row || !(size >= 1 && size <= 1e9) || !(ms > 0 && ms <= 1e9)) {
      return absl::InvalidArgumentError(absl::StrCat(
          file, ":", number, ": not kind,size,ms with a kind of step or prompt: ", stripped));
    }
    Points* const points = cells[0] == "step" ? &costs.steps_ : &costs.prompts_;
    if (!points->empty() && points->back().first >= size) {
      return absl::InvalidArgumentError(absl::StrCat(file, ":", number, ": sizes must ascend"));
    }
    points->push_back({size, ms});
  }
  if (costs.steps_.empty() || costs.prompts_.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(file, ":", number, ": a table has rows for steps and for prompts"));
  }
  if (costs.prompts_[0].first > 1) {
    costs.prompts_.insert(costs.prompts_.begin(), {1, At(costs.steps_, 1)});
  }
  return costs;
}

absl::StatusOr<Costs> Costs::Read(const std::string& path) {
  const absl::StatusOr<std::string> text = ReadText(path);
  if (!text.ok()) return text.status();
  return Parse(*text, path);
}

double Costs::At(const Points& points, double size) {
  if (points.size() == 1 || size <= points[0].first) return points[0].second;
  size_t above = 1;
  while (above + 1 < points.size() && points[above].first < size) ++above;
  const std::pair<double, double>& low = points[above - 1];
  const std::pair<double, double>& high = points[above];
  const double rise = high.second - low.second;
  // A table that falls at its end, as a noisy one may, does not fall below zero.
  if (size > high.first && rise < 0) return high.second;
  return low.second + rise * (size - low.first) / (high.first - low.first);
}

double Costs::StepMs(const scheduler::batching::iteration::Step& step) const {
  double prompts = 0;
  double answers = 0;
  for (const scheduler::batching::iteration::Row& row : step.rows) {
    (row.count > 1 ? prompts : answers) += row.count;
  }
  if (prompts == 0) return At(steps_, answers + step.padding);
  const double ms = At(prompts_, prompts + step.padding);
  return answers == 0 ? ms : ms + std::max(0.0, At(steps_, answers) - At(steps_, 1));
}

}  // namespace sim::serving
