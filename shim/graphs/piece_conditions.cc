#include "shim/graphs/piece_conditions.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <iterator>
#include <span>

#include "base/find.h"
#include "shim/send.h"
#include "shim/stderr_once.h"

namespace shim::graphs {
namespace {

const ConditionalWork* ConditionalAt(const FlatNode& node) {
  return node.work != nullptr ? std::get_if<ConditionalWork>(node.work) : nullptr;
}

CUresult RefuseBody() {
  static std::atomic<bool> said{false};
  StderrOnce(said, {"a body of a conditional node copies with memory of the host or with arrays, "
                    "which Laneway's client has a part in: use memory of cuMemAllocHost"});
  return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult RefuseSetter() {
  static std::atomic<bool> said{false};
  StderrOnce(said, {"a kernel sets a conditional handle whose node lies behind a step of the host "
                    "(a host function, an event, pageable memory): move that step before the "
                    "kernel or behind the node"});
  return CUDA_ERROR_NOT_SUPPORTED;
}

}  // namespace

PieceConditions::PieceConditions(const std::vector<FlatNode>& nodes, size_t begin, size_t end) {
  for (size_t i = begin; i < end; ++i) {
    const ConditionalWork* const work = ConditionalAt(nodes[i]);
    if (work == nullptr) continue;
    const ::graphs::Condition* const condition = work->node->condition.get();
    numbers_.emplace(condition->name(), static_cast<unsigned>(conditions_.size()));
    conditions_.push_back(condition);
  }
}

CUresult PieceConditions::Send(CUgraphExec piece, uint32_t wire) const {
  unsigned number = 0;
  for (const ::graphs::Condition* const condition : conditions_) {
    const ::graphs::Condition::Terms& terms = condition->terms();
    const unsigned flags = terms.assigns_default ? CU_GRAPH_COND_ASSIGN_DEFAULT : 0;
    const CUresult result = Post<ipc::Op::GraphCondition>(wire, piece, number++, condition->name(),
                                                          terms.default_value, flags);
    if (result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}

size_t EndOfNode(const std::vector<FlatNode>& nodes, size_t begin) {
  size_t end = begin + 1;
  while (end < nodes.size() && nodes[end].place.conditional != FlatNode::Place::kOutside) ++end;
  return end;
}

CUresult CheckConditions(const std::vector<FlatNode>& nodes, const std::vector<size_t>& begins) {
  const auto piece_of = [&begins](size_t node) {
    return std::upper_bound(begins.begin(), begins.end(), node) - begins.begin();
  };
  std::unordered_map<uint64_t, ptrdiff_t> pieces;  // by the condition
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (const ConditionalWork* const work = ConditionalAt(nodes[i]))
      pieces.emplace(work->node->condition->name(), piece_of(i));
    const bool inside = nodes[i].place.conditional != FlatNode::Place::kOutside;
    if (inside && nodes[i].work != nullptr && !IsForDevice(*nodes[i].work)) return RefuseBody();
  }
  if (pieces.empty()) return CUDA_SUCCESS;
  uint64_t word = 0;
  for (size_t i = 0; i < nodes.size(); ++i) {
    const KernelWork* const kernel =
        nodes[i].work != nullptr ? std::get_if<KernelWork>(nodes[i].work) : nullptr;
    const size_t bytes = kernel != nullptr ? kernel->params.size() : 0;
    for (size_t at = 0; at + sizeof word <= bytes; at += sizeof word) {
      std::memcpy(&word, kernel->params.data() + at, sizeof word);
      const ptrdiff_t* const piece = base::FindOrNull(pieces, word);
      if (piece != nullptr && *piece != piece_of(i)) return RefuseSetter();
    }
  }
  return CUDA_SUCCESS;
}

}  // namespace shim::graphs
