// Puts kernels, fills and copies into the graph that a stream captures, one after the other, and
// remembers which node each kernel has become.
//
// Thread safety: none.
#pragma once

#include "ipc/calls/vendor.h"

#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "functions/function.h"
#include "ipc/driver_table.h"

namespace functions {

struct Kernel {
  CUfunction function = nullptr;
  std::array<unsigned, 3> grid = {1, 1, 1};
  std::array<unsigned, 3> block = {1, 1, 1};
  unsigned shared_bytes = 0;
  std::vector<CUlaunchAttribute> attributes;
  Bytes parameters;   // packed, with the addresses of this process
  uint32_t step = 0;  // the step of the function whose call gave the parameters
};

// `height` rows of row_bytes.
struct Fill {
  CUdeviceptr to = 0;
  size_t pitch = 0;
  unsigned value = 0, element_bytes = 1;
  size_t row_bytes = 0, height = 1;
};
struct RowCopy {
  CUdeviceptr to = 0;
  size_t to_pitch = 0;
  CUdeviceptr from = 0;
  size_t from_pitch = 0;
  size_t width = 0, height = 1;
};

class Emitter {
 public:
  // Both outlive this object.
  Emitter(const ipc::DriverTable* driver, CUstream stream) : driver_(*driver), stream_(stream) {}

  CUresult Add(const Kernel& kernel);
  CUresult Add(const Fill& fill);
  CUresult Add(const RowCopy& copy);

  struct Node {
    CUgraphNode node = nullptr;
    Kernel kernel;
  };
  // Null: the step gave no kernel its parameters.
  Node* NodeOf(uint32_t step);
  // Later launches of the executable graph give the kernel its present parameters.
  CUresult Update(CUgraphExec executable, Node* node);

 private:
  const ipc::DriverTable& driver_;
  const CUstream stream_;
  std::map<uint32_t, Node> nodes_;  // by step
};

}  // namespace functions
