// The template of a job's iterations: bodies, and which follows which. Learned by comparing each
// iteration with those before it (Nimble's execution trace, found without a framework; as in a CUDA
// graph, operations are fixed and arguments may be set anew).
//
// An iteration is a way through the bodies. Where an iteration goes on with another operation than
// any before it, the body there is split, and the new operations become a body beside the rest. A
// row of operations that some body ends with is not made twice. So a branch is two bodies between
// the same two, and a loop whose rounds vary in number is a body that follows itself. Arguments are
// no reason to split: the words that differ become patches. A body never crosses a wait of the
// host, so that held operations never keep a program waiting.
//
// A body is ready from its third occurrence on: the first is the original, the second and third
// were compared with it.
//
// Bounded by Limits: bodies that no iteration has passed for longest go. Thread safety: none; pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "ipc/calls/limits.h"
#include "replay/body.h"

namespace replay {

// What has ended, or lies elsewhere.
struct Loss {
  enum class Kind : uint8_t {
    kModule,   // `module` was unloaded
    kMemory,   // `bytes` from `begin` on were freed or resized, or came back from the host at
               // another address. Memory of the lane that each iteration frees is no loss.
    kStream,   // the stream `name` was destroyed
    kEvent,    // the event `name`
    kGraph,    // the program's graph `name` was destroyed or updated
    kLibrary,  // a library handle was destroyed, or a setting of one has changed
    kWorker,   // the session has another worker, or moved to another device
  };
  Kind kind = Kind::kWorker;
  ModuleContent module = {};
  uint64_t begin = 0, bytes = 0;
  uint32_t name = 0;
};

struct Invalidated {
  std::vector<BodyId> dropped;  // no longer in the template
  // Whatever a worker made of any body is gone; the bodies are right.
  bool instances_lost = false;
};

class Template {
 public:
  static constexpr uint32_t kReadyOccurrences = 3;
  struct Limits {
    size_t bodies = ipc::limits::kTemplateBodiesMax;
    size_t body_ops = ipc::limits::kTemplateBodyOpsMax;
    size_t bytes = ipc::limits::kTemplateBytesMax;
  };

  // Where an iteration is: after the body at this place. Valid while version() stays as it is;
  // kBegin always is.
  using Place = uint32_t;
  static constexpr Place kBegin = 0, kNowhere = ~0u;

  // `callees` outlives the template, and names the callees of all that it learns.
  explicit Template(const Callees* callees) : Template(callees, Limits()) {}
  Template(const Callees* callees, const Limits& limits);

  void Learn(const OpStream& iteration);
  Invalidated Invalidate(const Loss& loss);

  // The place whose body begins with an operation of this key and may come after `place`; kNowhere:
  // none.
  Place Next(Place place, const OpKey& key) const;
  // The longest body that is ready and begins with this key, wherever it has come so far.
  Place Anywhere(const OpKey& key) const;
  // REQUIRES below: a valid place other than kBegin and kNowhere.
  const std::shared_ptr<const Body>& body(Place place) const { return nodes_[place].body; }
  bool IsReady(Place place) const { return nodes_[place].occurrences >= kReadyOccurrences; }

  // Grows with each change that ends places.
  uint64_t version() const { return version_; }
  size_t bodies() const { return bodies_; }
  size_t bytes() const;

 private:
  struct Node {
    std::shared_ptr<const Body> body;  // null: free, or the begin
    std::vector<Place> next;           // their bodies begin with different keys
    uint32_t occurrences = 0;
    uint64_t last_use = 0;
  };
  struct Shared {
    Place place = kNowhere;
    size_t ops = 0;  // at the end of its body
  };

  Place Link(Place* from, const OpStream& ops, size_t begin);
  Place FindBegin(const OpStream& ops, size_t begin) const;
  Shared FindShared(const OpStream& ops, size_t begin, size_t end) const;
  Place Add(Body body);
  Place Split(Place place, size_t at);
  void Compare(Place place, const OpStream& ops, size_t begin);
  bool IsTouched(const Body& body, const Loss& loss) const;
  void Trim();
  void Remove(const std::vector<Place>& places, std::vector<BodyId>* dropped);
  void RemoveUnreachable(std::vector<BodyId>* dropped);
  void Free(Place place, std::vector<BodyId>* dropped);

  const Callees* const callees_;
  const Limits limits_;
  std::vector<Node> nodes_;  // by place
  size_t bodies_ = 0;
  uint64_t starts_ = 0;  // a bit for each key that a body may begin with
  BodyId last_id_ = 0;
  uint64_t iterations_ = 0;
  uint64_t version_ = 0;
};

}  // namespace replay
