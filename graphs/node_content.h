// What a node of a graph holds, for the client and the software GPU alike. `Work` is what the node
// does, `Attribute` the driver's type for an attribute's value. Thread safety: values.
#pragma once

#include <map>
#include <vector>

namespace graphs {

template <class Work, class Attribute>
struct NodeContent {
  Work work;
  std::map<int, Attribute> attributes;  // of a kernel, by CUlaunchAttributeID
  // Handed to the program by the last call that read the node's parameters: a pointer into `work`
  // for each parameter of the kernel.
  std::vector<void*> param_pointers;
};

}  // namespace graphs
