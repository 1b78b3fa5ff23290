// The operators of published networks, from tests/data/networks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "scheduler/streams/dag.h"
#include "scheduler/streams/device_model.h"
#include "scheduler/streams/roofline.h"

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

// Convolutions and matrix products take tiles of 32 x 32 outputs (positions x channels), 160 at
// once; all others, depthwise ones among them, take blocks of 256 outputs, 640 at once. An element
// has four bytes.
Work WorkOf(const Operator& each);
std::vector<Cost> CostsOf(const std::vector<Operator>& operators, const Roofline& device);

Dag GraphOf(const std::vector<Operator>& operators);

}  // namespace scheduler::streams
