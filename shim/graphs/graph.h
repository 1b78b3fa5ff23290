// A program's graphs: those of graphs/graph.h, with work as what their nodes do. They never leave
// the client; what runs is the executable graph made of one (executable.h). Thread safety: as of
// graphs; the tables of the program's values are safe.
#pragma once

#include <cstdint>
#include <memory>

#include "graphs/conditional.h"
#include "graphs/graph.h"
#include "graphs/node_content.h"
#include "shim/graphs/registry.h"
#include "shim/graphs/work.h"

namespace shim::graphs {

using NodeContent = ::graphs::NodeContent<Work, CUlaunchAttributeValue>;

struct GraphUse {
  using Content = NodeContent;
  static std::shared_ptr<Graph>* ChildIn(NodeContent* content);
  static std::shared_ptr<::graphs::Conditional<GraphUse>> ConditionalIn(const NodeContent& content);
  static bool MayBeInBody(const NodeContent& content);
  static uint64_t Enter(const std::shared_ptr<Graph>& graph);
  static uint64_t Enter(const std::shared_ptr<Node>& node);
  static void Leave(const Graph& graph);
  static void Leave(const Node& node);
};

using ::graphs::Refusal;
using ::graphs::UserObject;
using ::graphs::UserReferences;

inline CUresult ResultOf(Refusal refusal) {
  return static_cast<CUresult>(::graphs::CodeOf(refusal));
}

class Executable;

// What the program may name.
struct Objects {
  static Objects& Process();
  Registry<Graph> graphs{0x71};
  Registry<Node> nodes{0x72};
  Registry<Executable> executables{0x73};
  Registry<UserObject> user_objects{0x74};
  ::graphs::Conditions conditions{0x75};
};

}  // namespace shim::graphs
