// An executable graph as one list of nodes: child graphs are their nodes, between two empty ones,
// and the nodes of bodies follow their conditional node. Thread safety: values, and a function
// without state.
#pragma once

#include <cstdint>
#include <vector>

#include "shim/graphs/work.h"

namespace shim::graphs {

struct FlatNode {
  // In which body it lies: of the conditional node with this number.
  struct Place {
    bool operator==(const Place&) const = default;
    static constexpr uint32_t kOutside = ~0u;
    uint32_t conditional = kOutside;
    uint32_t body = 0;
  };

  const Work* work = nullptr;          // null: nothing to do
  std::vector<uint32_t> dependencies;  // earlier ones
  Place place;
};

// True when the device can do the node without the client.
bool IsForDevice(const Work& work);

}  // namespace shim::graphs
