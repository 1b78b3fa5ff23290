#include "shim/graphs/pieces.h"

#include <algorithm>
#include <utility>

namespace shim::graphs {
namespace {

constexpr size_t kPieceNodesMax = 1u << 14;  // bodies stay together beyond it

bool IsInPiece(const FlatNode& node) { return node.work == nullptr || IsForDevice(*node.work); }

// No ordinary call does what it does.
bool IsPieceAlone(const FlatNode& node) {
  return node.work != nullptr && (std::holds_alternative<LibraryWork>(*node.work) ||
                                  std::holds_alternative<ConditionalWork>(*node.work));
}

// Where each piece or step begins.
std::vector<size_t> Cut(const std::vector<FlatNode>& nodes) {
  std::vector<size_t> begins;
  for (size_t begin = 0; begin < nodes.size();) {
    begins.push_back(begin);
    size_t end = begin;
    while (end < nodes.size() && end - begin < kPieceNodesMax && IsInPiece(nodes[end]))
      end = EndOfNode(nodes, end);
    begin = std::max(end, begin + 1);
  }
  return begins;
}

}  // namespace

CUresult Pieces::Make(const std::vector<FlatNode>& nodes) {
  Context* context = nullptr;
  uint64_t value = 0;
  if (const CUresult result = State::Process().Current(&context, &value); result != CUDA_SUCCESS)
    return result;
  const std::vector<size_t> begins = Cut(nodes);
  if (const CUresult result = CheckConditions(nodes, begins); result != CUDA_SUCCESS) return result;
  items_.clear();  // their names are free for the new ones
  std::vector<Item> items;
  for (size_t i = 0; i < begins.size(); ++i) {
    const size_t begin = begins[i];
    const size_t end = i + 1 < begins.size() ? begins[i + 1] : nodes.size();
    Item item;
    item.begin = static_cast<uint32_t>(begin);
    if (end > begin + 1 || IsPieceAlone(nodes[begin])) {
      const CUresult result = Piece::Make(nodes, begin, end, *context, value, &item.piece);
      if (result != CUDA_SUCCESS) return result;
    } else {
      item.step = nodes[begin].work;
    }
    items.push_back(std::move(item));
  }
  items_ = std::move(items);
  return CUDA_SUCCESS;
}

CUresult Pieces::Launch(const Stream& stream) {
  for (const Item& item : items_) {
    CUresult result = CUDA_SUCCESS;
    if (item.piece != nullptr) {
      result = item.piece->Launch(stream);
    } else if (item.step != nullptr) {
      result = Run(*item.step, stream);
    }
    if (result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}

CUresult Pieces::SetKernel(uint32_t node, const KernelWork& work) {
  const std::vector<Item>::iterator after =
      std::upper_bound(items_.begin(), items_.end(), node,
                       [](uint32_t number, const Item& item) { return number < item.begin; });
  const Item& item = *(after - 1);
  return item.piece != nullptr ? item.piece->SetKernel(node - item.begin, work) : CUDA_SUCCESS;
}

}  // namespace shim::graphs
