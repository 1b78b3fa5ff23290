// Counters, gauges and histograms, and their page for scrapers (Prometheus text exposition format
// 0.0.4).
//
// A series is made once and kept as a pointer by the code that counts. Thread safety: none.
// Ownership: the registry owns all series.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace serve::metrics {

using Labels = std::vector<std::pair<std::string, std::string>>;

class Counter {
 public:
  void Add(double amount = 1) { value_ += amount; }
  double value() const { return value_; }

 private:
  double value_ = 0;
};

class Gauge {
 public:
  void Set(double value) { value_ = value; }
  void Add(double amount) { value_ += amount; }
  double value() const { return value_; }

 private:
  double value_ = 0;
};

class Histogram {
 public:
  // REQUIRES: bounds rise. A value falls into the first bucket whose bound is no smaller.
  explicit Histogram(std::vector<double> bounds);
  void Observe(double value);
  const std::vector<double>& bounds() const { return bounds_; }
  // One more than bounds: the last bucket has none. Not cumulative.
  const std::vector<uint64_t>& counts() const { return counts_; }
  double sum() const { return sum_; }

 private:
  std::vector<double> bounds_;
  std::vector<uint64_t> counts_;
  double sum_ = 0;
};

// Bounds for latencies, from a millisecond to minutes.
std::vector<double> SecondsBounds();

class Registry {
 public:
  // The same name and labels give the same series. REQUIRES: a name is of one kind; its help is
  // that of the first call.
  Counter* AddCounter(const std::string& name, const std::string& help, const Labels& labels = {});
  Gauge* AddGauge(const std::string& name, const std::string& help, const Labels& labels = {});
  Histogram* AddHistogram(const std::string& name, const std::string& help,
                          std::vector<double> bounds, const Labels& labels = {});

  // The whole page, sorted by name.
  std::string Text() const;

 private:
  using Series =
      std::variant<std::unique_ptr<Counter>, std::unique_ptr<Gauge>, std::unique_ptr<Histogram>>;
  struct Family {
    std::string help;
    std::map<std::string, Series> series;  // by the labels' text
  };

  Series* Find(const std::string& name, const std::string& help, const Labels& labels);

  std::map<std::string, Family> families_;
};

}  // namespace serve::metrics
