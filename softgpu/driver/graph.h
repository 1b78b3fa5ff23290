// Graphs: nodes of work and the edges between them, before instantiation.
//
// A graph owns its nodes; a node's handle is its address. Nodes keep the order in which they were
// added, which is also the order among independent nodes when the graph runs. Thread safety: CUDA
// leaves concurrent changes of one graph to the program; the tables of handles are safe.
#pragma once

#include <cuda.h>

#include <atomic>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "softgpu/driver/work.h"

namespace softgpu {

class Graph;
class UserObject;

class GraphNode {
 public:
  GraphNode(std::weak_ptr<Graph> owner, Work content)
      : graph(std::move(owner)), work(std::move(content)) {}

  CUgraphNode handle() const { return reinterpret_cast<CUgraphNode>(const_cast<GraphNode*>(this)); }

  const std::weak_ptr<Graph> graph;
  Work work;
  std::vector<GraphNode*> dependencies;
  const GraphNode* original =
      nullptr;  // of a clone: the node it was made from; an identity, never read through
  std::map<int, CUlaunchAttributeValue> attributes;  // of a kernel node, by CUlaunchAttributeID
  std::vector<void*>
      param_pointers;  // what GetParams handed out: one into `work` for each parameter
};

class Graph : public std::enable_shared_from_this<Graph> {
 public:
  static std::shared_ptr<Graph> Create();  // enters it into the driver's table
  ~Graph();

  CUgraph handle() const { return reinterpret_cast<CUgraph>(const_cast<Graph*>(this)); }
  const std::vector<std::shared_ptr<GraphNode>>& nodes() const { return nodes_; }

  // Adds a node behind `dependencies`, which must be nodes of this graph. A child graph is copied.
  CUresult Add(Work work, const std::vector<GraphNode*>& dependencies, GraphNode** node);
  void Remove(GraphNode* node);
  bool Contains(const GraphNode* node) const;

  CUresult AddEdge(GraphNode* from, GraphNode* to);
  CUresult RemoveEdge(GraphNode* from, GraphNode* to);
  std::vector<std::pair<GraphNode*, GraphNode*>> Edges() const;
  std::vector<GraphNode*> DependentsOf(const GraphNode* node) const;

  // Every node after its dependencies. False when there is a cycle.
  bool Order(std::vector<std::shared_ptr<GraphNode>>* order) const;

  // A copy whose nodes know their originals. Not in the driver's table.
  std::shared_ptr<Graph> Clone() const;
  // Removes graph and nodes from the tables; what still uses them keeps them.
  void Destroy();

  std::map<std::shared_ptr<UserObject>, unsigned>
      user_objects;  // with the references that the graph holds

 private:
  std::vector<std::shared_ptr<GraphNode>> nodes_;
};

// An application's object that lives while references to it do.
class UserObject {
 public:
  UserObject(void* pointer, CUhostFn destroy, unsigned references)
      : pointer_(pointer), destroy_(destroy), references_(references) {}
  CUuserObject handle() const {
    return reinterpret_cast<CUuserObject>(const_cast<UserObject*>(this));
  }
  void Retain(unsigned count) { references_ += count; }
  void Release(unsigned count);  // calls the destructor with the last one

 private:
  void* const pointer_;
  const CUhostFn destroy_;
  std::atomic<unsigned> references_;
};

// References to such objects, given up when it ends: what of a graph its executables and their
// launches keep.
class UserReferences {
 public:
  using Counts = std::map<std::shared_ptr<UserObject>, unsigned>;

  explicit UserReferences(Counts counts);
  UserReferences(const UserReferences&) = delete;
  ~UserReferences();
  const Counts& counts() const { return counts_; }

 private:
  const Counts counts_;
};

}  // namespace softgpu
