// A program's graphs: nodes of work and the edges between them. They never leave the client; what
// runs is the executable graph made of one (executable.h).
//
// A graph owns its nodes, which keep the order in which they were added: it is also the order among
// independent nodes. Thread safety: CUDA leaves concurrent changes of one graph to the program; the
// tables of the program's values are safe.
#pragma once

#include <atomic>
#include <cstddef>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "shim/graphs/registry.h"
#include "shim/graphs/work.h"

namespace shim::graphs {

class UserObject;

class Node {
 public:
  Node(std::weak_ptr<Graph> owner, Work content)
      : graph(std::move(owner)), work(std::move(content)) {}

  uint64_t value = 0;  // what the program holds
  const std::weak_ptr<Graph> graph;
  Work work;
  std::vector<Node*> dependencies;
  uint64_t original = 0;                             // of a clone: the node that it was made from
  std::map<int, CUlaunchAttributeValue> attributes;  // of a kernel, by CUlaunchAttributeID
  std::vector<void*> param_pointers;  // what GetParams gave: one into `work` for each parameter
  size_t position = 0;                // in its graph
};

class Graph : public std::enable_shared_from_this<Graph> {
 public:
  static std::shared_ptr<Graph> Create();
  ~Graph();

  uint64_t value = 0;
  const std::vector<std::shared_ptr<Node>>& nodes() const { return nodes_; }

  // Adds a node behind `dependencies`. A child graph is copied. 1: they are no nodes of this graph.
  CUresult Add(Work work, std::vector<Node*> dependencies, Node** node);
  void Remove(Node* node);

  CUresult AddEdge(Node* from, Node* to);
  CUresult RemoveEdge(Node* from, Node* to);
  std::vector<std::pair<Node*, Node*>> Edges() const;
  std::vector<Node*> DependentsOf(const Node* node) const;

  // Every node after its dependencies. False when there is a cycle.
  bool Order(std::vector<Node*>* order) const;

  // A copy whose nodes know their originals; the program may name both.
  std::shared_ptr<Graph> Clone() const;
  // The program may no longer name it and its nodes; what still uses them keeps them.
  void Destroy();

  std::map<std::shared_ptr<UserObject>, unsigned> user_objects;  // with the references held

 private:
  bool Owns(const Node* node) const { return node->graph.lock().get() == this; }
  std::vector<std::shared_ptr<Node>> nodes_;
};

// An object of the program's that lives while references to it do.
class UserObject {
 public:
  UserObject(void* pointer, CUhostFn destroy, unsigned references)
      : pointer_(pointer), destroy_(destroy), references_(references) {}
  uint64_t value = 0;
  void Retain(unsigned count) { references_ += count; }
  void Release(unsigned count);  // calls the destructor with the last one

 private:
  void* const pointer_;
  const CUhostFn destroy_;
  std::atomic<unsigned> references_;
};

// References to such objects, given up when it ends: what an executable keeps of its graph.
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

class Executable;

// What the program may name.
struct Objects {
  static Objects& Process();
  Registry<Graph> graphs{0x71};
  Registry<Node> nodes{0x72};
  Registry<Executable> executables{0x73};
  Registry<UserObject> user_objects{0x74};
};

}  // namespace shim::graphs
