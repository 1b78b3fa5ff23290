// The operators of published networks, from tests/data/networks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "scheduler/streams/dag.h"

namespace scheduler::streams {

struct Operator {
  std::string op;
  std::vector<NodeId> parents;
  std::vector<int64_t> shape;  // of the output: batch, channels, rows, columns
  int64_t multiply_accumulates = 0;
  int64_t elements_read = 0;  // weights included
  int64_t elements_written = 0;
};

// REQUIRES: tests/data/networks/NAME.csv.
std::vector<Operator> ReadNetwork(const std::string& name);

Dag GraphOf(const std::vector<Operator>& operators);

}  // namespace scheduler::streams
