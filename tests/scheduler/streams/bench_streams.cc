// How long the assignment of streams takes for graphs of 10,000 nodes of several kinds.
// usage: bench_streams [--json]
#include <chrono>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/streams/choose.h"
#include "scheduler/streams/nimble.h"
#include "tests/scheduler/streams/graphs.h"
#include "tests/shim/bench/report.h"

namespace scheduler::streams {
namespace {

constexpr int kNodes = 10'000;
constexpr double kBarMs = 1'000;

template <typename Function>
bench::Figure Measure(const std::string& name, double bar, const Function& function) {
  bench::Figure figure = {name, "ms"};
  figure.bar = bar;
  for (int round = 0; round < 3; ++round) {
    const std::chrono::steady_clock::time_point begin = std::chrono::steady_clock::now();
    function();
    const std::chrono::steady_clock::time_point end = std::chrono::steady_clock::now();
    figure.samples.push_back(std::chrono::duration<double, std::milli>(end - begin).count());
  }
  return figure;
}

}  // namespace
}  // namespace scheduler::streams

int main(int argc, char** argv) {
  using namespace scheduler::streams;
  const bool as_json = argc > 1 && std::strcmp(argv[1], "--json") == 0;
  Random random(1);
  const std::vector<std::pair<std::string, Dag>> graphs = {
      {"random, 15,000 edges", RandomDag(kNodes, 15'000, kNodes, &random)},
      {"random, 100,000 edges", RandomDag(kNodes, 100'000, kNodes, &random)},
      {"random, near, 20,000 edges", RandomDag(kNodes, 20'000, 100, &random)},
      {"layers of 100, 3 edges in", Layered(kNodes, 100, 3, &random)},
      {"layers of 100, all edges", Layered(kNodes, 100, 500, &random)},
      {"layers of 1,000, 2 edges in", Layered(kNodes, 1'000, 2, &random)},
      {"wide", Wide(kNodes)},
      {"a chain", Chain(kNodes)},
      {"a ladder", Ladder(kNodes)},
  };
  bench::Report report;
  for (const std::pair<std::string, Dag>& graph : graphs) {
    report.Add(Measure("Nimble: " + graph.first, kBarMs, [&graph] { AssignNimble(graph.second); }));
    const std::vector<Cost> costs = RandomCosts(kNodes, &random);
    report.Add(Measure("choice by cost: " + graph.first, kBarMs,
                       [&graph, &costs] { Choose(graph.second, costs, 2'000); }));
  }
  report.Print(as_json);
  return report.exit_code();
}
