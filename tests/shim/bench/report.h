// Figures with their bars: a table for people, JSON for programs, and the exit code of
// scripts/bench. Thread safety: one thread.
#pragma once

#include <string>
#include <vector>

namespace bench {

enum class Verdict { kMet, kMissed, kNoisy, kReported, kNotMeasured };

struct Figure {
  std::string name;
  std::string unit;
  std::vector<double> samples;  // none: not measured
  double bar = 0;               // 0: only reported
  bool higher_is_better = false;
};

class Report {
 public:
  void Add(Figure figure);
  // A sentence under the table.
  void Note(std::string sentence);
  // To standard output.
  void Print(bool as_json) const;
  // 0: every bar is met and every figure measured; 1: a bar is missed; 2: one cannot be told, as it
  // was not measured or A against A says that the machine is too noisy.
  int exit_code() const;

 private:
  std::vector<Figure> figures_;
  std::vector<std::string> notes_;
};

double Median(std::vector<double> samples);

}  // namespace bench
