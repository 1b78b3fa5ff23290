#include "shim/graphs/piece.h"

#include <set>
#include <utility>

#include "base/mutex.h"
#include "shim/copy_box.h"
#include "shim/send.h"

namespace shim::graphs {
namespace {

using ipc::Op;
constexpr size_t kEdgesPerMessage = 4096;  // half of a message

CUgraphExec NameOf(uint64_t value) { return reinterpret_cast<CUgraphExec>(value); }

// The messages that define one node.
class Definition {
 public:
  Definition(uint64_t piece, unsigned number, const PieceConditions& conditions, uint32_t wire)
      : piece_(NameOf(piece)), number_(number), conditions_(conditions), wire_(wire) {}

  CUresult operator()(const KernelWork& work) const {
    return Post<Op::GraphKernel>(
        wire_, piece_, number_, reinterpret_cast<CUfunction>(work.function), work.grid[0],
        work.grid[1], work.grid[2], work.block[0], work.block[1], work.block[2], work.shared_bytes,
        work.cooperative ? 1u : 0u, work.params.data(), static_cast<unsigned>(work.params.size()));
  }
  CUresult operator()(const MemsetWork& work) const {
    const CUDA_MEMSET_NODE_PARAMS_v1& fill = work.params;
    const size_t row = fill.width * fill.elementSize;
    return Post<Op::GraphFill>(wire_, piece_, number_, fill.dst,
                               fill.height == 1 ? row : fill.pitch, fill.value, fill.elementSize,
                               row, fill.height);
  }
  CUresult operator()(const MemcpyWork& work) const {
    CopyBox box;
    if (const CUresult result = BoxOf(work.params, &box); result != CUDA_SUCCESS) return result;
    const PitchedCopy& rows = box.rows;
    return Post<Op::GraphCopy>(wire_, piece_, number_, CUdeviceptr{rows.to}, rows.to_pitch,
                               CUdeviceptr{rows.from}, rows.from_pitch, rows.width, rows.height);
  }
  CUresult operator()(const ConditionalWork& work) const {
    const ::graphs::Conditional<GraphUse>& node = *work.node;
    return Post<Op::GraphConditional>(wire_, piece_, number_, conditions_.NumberOf(*node.condition),
                                      static_cast<unsigned>(node.kind),
                                      static_cast<unsigned>(node.bodies.size()));
  }
  CUresult operator()(const LibraryWork& work) const {
    return Post<Op::GraphChild>(wire_, piece_, number_, NameOf(work.piece->value()));
  }
  template <class Other>
  CUresult operator()(const Other&) const {
    return Post<Op::GraphEmpty>(wire_, piece_, number_);
  }

 private:
  const CUgraphExec piece_;
  const unsigned number_;
  const PieceConditions& conditions_;
  const uint32_t wire_;
};

}  // namespace

// The worker is told of the name by `op`.
template <Op op>
CUresult Piece::Begin(uint64_t context, uint32_t wire, uint64_t* value) {
  State& state = State::Process();
  GraphPiece* const entry = state.graph_pieces.Create(value);
  if (entry == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  entry->context = context;
  entry->wire = wire;
  CUgraphExec ignored = nullptr;
  const GivenName name(*value);
  const CUresult result = Post<op>(wire, &ignored);
  if (result != CUDA_SUCCESS) state.graph_pieces.Destroy(*value);
  return result;
}

CUresult Piece::Make(const std::vector<FlatNode>& nodes, size_t begin, size_t end,
                     const Context& context, uint64_t context_value, std::unique_ptr<Piece>* made) {
  uint64_t value = 0;
  CUresult result = Begin<Op::GraphBegin>(context_value, context.wire, &value);
  if (result != CUDA_SUCCESS) return result;
  std::unique_ptr<Piece> piece(new Piece(value));
  if (GraphPiece* const entry = State::Process().graph_pieces.Find(value); entry != nullptr) {
    const base::MutexLock lock(&entry->mutex);
    entry->modules = ModulesOf(nodes, begin, end);
  }
  result = piece->Define(nodes, begin, end, context.wire);
  if (result == CUDA_SUCCESS) *made = std::move(piece);
  return result;
}

std::vector<uint64_t> Piece::ModulesOf(const std::vector<FlatNode>& nodes, size_t begin,
                                       size_t end) {
  std::set<uint64_t> modules;
  for (size_t i = begin; i < end; ++i) {
    const KernelWork* const kernel =
        nodes[i].work != nullptr ? std::get_if<KernelWork>(nodes[i].work) : nullptr;
    const Function* const function =
        kernel != nullptr ? State::Process().functions.Find(kernel->function) : nullptr;
    if (function != nullptr) modules.insert(function->module);
  }
  return {modules.begin(), modules.end()};
}

CUresult Piece::BeginCapture(const Stream& stream, std::shared_ptr<Piece>* made) {
  uint64_t value = 0;
  const CUresult result = Begin<Op::GraphCapture>(stream.context, stream.wire, &value);
  if (result == CUDA_SUCCESS) made->reset(new Piece(value));
  return result;
}

CUresult Piece::EndCapture() const {
  const GraphPiece* const entry = Find();
  if (entry == nullptr) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  return Call<Op::GraphCaptured>(entry->wire, NameOf(value_));
}

CUresult Piece::Define(const std::vector<FlatNode>& nodes, size_t begin, size_t end,
                       uint32_t wire) {
  const PieceConditions conditions(nodes, begin, end);
  if (const CUresult result = conditions.Send(NameOf(value_), wire); result != CUDA_SUCCESS)
    return result;
  for (size_t i = begin; i < end; ++i) {
    const CUresult result = DefineNode(nodes, begin, i, conditions, wire);
    if (result != CUDA_SUCCESS) return result;
  }
  if (const CUresult result = SendEdges(nodes, begin, end, wire); result != CUDA_SUCCESS)
    return result;
  return Call<Op::GraphSeal>(wire, NameOf(value_));
}

CUresult Piece::DefineNode(const std::vector<FlatNode>& nodes, size_t begin, size_t number,
                           const PieceConditions& conditions, uint32_t wire) {
  static const Work kNothing = EmptyWork{};
  const FlatNode& node = nodes[number];
  const FlatNode::Place before = number == begin ? FlatNode::Place{} : nodes[number - 1].place;
  const unsigned own = static_cast<unsigned>(number - begin);
  if (node.place != before) {
    const bool outside = node.place.conditional == FlatNode::Place::kOutside;
    const unsigned conditional = outside ? ipc::laneway::kGraphOutside
                                         : node.place.conditional - static_cast<unsigned>(begin);
    const CUresult result =
        Post<Op::GraphInside>(wire, NameOf(value_), own, conditional, node.place.body);
    if (result != CUDA_SUCCESS) return result;
  }
  return std::visit(Definition(value_, own, conditions, wire),
                    node.work != nullptr ? *node.work : kNothing);
}

CUresult Piece::SendEdges(const std::vector<FlatNode>& nodes, size_t begin, size_t end,
                          uint32_t wire) {
  std::vector<uint32_t> pairs;
  unsigned messages = 0;
  for (size_t i = begin; i < end; ++i) {
    for (const uint32_t from : nodes[i].dependencies) {
      if (from < begin) continue;  // ordered by the stream
      pairs.push_back(static_cast<uint32_t>(from - begin));
      pairs.push_back(static_cast<uint32_t>(i - begin));
      if (pairs.size() < kEdgesPerMessage * 2) continue;
      const CUresult result = Post<Op::GraphEdges>(wire, NameOf(value_), messages++, pairs.data(),
                                                   static_cast<unsigned>(pairs.size()));
      if (result != CUDA_SUCCESS) return result;
      pairs.clear();
    }
  }
  if (pairs.empty()) return CUDA_SUCCESS;
  return Post<Op::GraphEdges>(wire, NameOf(value_), messages, pairs.data(),
                              static_cast<unsigned>(pairs.size()));
}

Piece::~Piece() {
  const GraphPiece* const entry = Find();
  if (entry != nullptr) Post<Op::GraphEnd>(entry->wire, NameOf(value_));
}

const GraphPiece* Piece::Find() const { return State::Process().graph_pieces.Find(value_); }

CUresult Piece::SetKernel(uint32_t node, const KernelWork& work) {
  const GraphPiece* const entry = Find();
  if (entry == nullptr) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  return Post<Op::GraphSetKernel>(
      entry->wire, NameOf(value_), node, reinterpret_cast<CUfunction>(work.function), work.grid[0],
      work.grid[1], work.grid[2], work.block[0], work.block[1], work.block[2], work.shared_bytes,
      work.params.data(), static_cast<unsigned>(work.params.size()));
}

CUresult Piece::Launch(const Stream& stream) const {
  if (Find() == nullptr) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  return Post<Op::GraphLaunch>(
      stream.wire, NameOf(value_),
      stream.legacy ? CU_STREAM_LEGACY : reinterpret_cast<CUstream>(stream.value));
}

}  // namespace shim::graphs
