// Names of the software GPU's graphs, for headers that only point to them (graph.h has the rest).
#pragma once

namespace graphs {
template <class Use>
class Graph;
template <class Use>
class Node;
template <class Use>
struct Conditional;
class UserObject;
}  // namespace graphs

namespace softgpu {

struct GraphUse;
using Graph = graphs::Graph<GraphUse>;
using GraphNode = graphs::Node<GraphUse>;
using GraphConditional = graphs::Conditional<GraphUse>;
using UserObject = graphs::UserObject;

}  // namespace softgpu
