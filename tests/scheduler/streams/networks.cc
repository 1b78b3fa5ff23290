#include "tests/scheduler/streams/networks.h"

#include <cassert>
#include <fstream>
#include <sstream>

namespace scheduler::streams {
namespace {

std::vector<int64_t> Numbers(const std::string& text, char separator) {
  std::vector<int64_t> numbers;
  std::istringstream in(text);
  for (std::string word; std::getline(in, word, separator);) numbers.push_back(std::stoll(word));
  return numbers;
}

int64_t Pieces(int64_t whole, int64_t piece) { return (whole + piece - 1) / piece; }

}  // namespace

Work WorkOf(const Operator& each) {
  Work work;
  work.multiply_accumulates = each.multiply_accumulates;
  work.bytes = (each.elements_read + each.elements_written) * 4;
  work.blocks = Pieces(each.elements_written, 256);
  work.blocks_at_once = 640;
  if (each.op == "conv" || each.op == "linear") {
    const int64_t channels = each.shape[1];
    const int64_t positions = each.elements_written / channels;
    work.blocks = Pieces(positions, 32) * Pieces(channels, 32);
    work.blocks_at_once = 160;
  }
  return work;
}

std::vector<Operator> ReadNetwork(const std::string& name) {
  std::ifstream file(std::string(LANEWAY_NETWORKS) + "/" + name + ".csv");
  assert(file.is_open());
  std::vector<Operator> operators;
  std::string line;
  std::getline(file, line);
  while (std::getline(file, line)) {
    std::istringstream in(line);
    std::vector<std::string> fields(7);  // id, op, parents, shape, macs, read, written
    for (std::string& field : fields) std::getline(in, field, ',');
    assert(std::stoll(fields[0]) == static_cast<int64_t>(operators.size()));
    Operator one;
    one.op = fields[1];
    for (const int64_t parent : Numbers(fields[2], ' ')) {
      one.parents.push_back(static_cast<NodeId>(parent));
    }
    one.shape = Numbers(fields[3], 'x');
    one.multiply_accumulates = std::stoll(fields[4]);
    one.elements_read = std::stoll(fields[5]);
    one.elements_written = std::stoll(fields[6]);
    operators.push_back(one);
  }
  return operators;
}

std::vector<Cost> CostsOf(const std::vector<Operator>& operators, const Roofline& device) {
  std::vector<Cost> costs;
  costs.reserve(operators.size());
  for (const Operator& each : operators) costs.push_back(CostOf(WorkOf(each), device));
  return costs;
}

Dag GraphOf(const std::vector<Operator>& operators) {
  std::vector<Edge> edges;
  for (size_t node = 0; node < operators.size(); ++node) {
    for (const NodeId parent : operators[node].parents) {
      edges.push_back({parent, static_cast<NodeId>(node)});
    }
  }
  return *Dag::Make(static_cast<int>(operators.size()), edges);
}

}  // namespace scheduler::streams
