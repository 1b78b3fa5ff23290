#include "shim/graphs/pieces.h"

#include <algorithm>
#include <utility>

namespace shim::graphs {
namespace {

constexpr size_t kPieceNodesMax = 1u << 14;

}  // namespace

CUresult Pieces::Make(const std::vector<FlatNode>& nodes) {
  Context* context = nullptr;
  uint64_t value = 0;
  if (const CUresult result = State::Process().Current(&context, &value); result != CUDA_SUCCESS)
    return result;
  items_.clear();  // their names are free for the new ones
  std::vector<Item> items;
  for (size_t begin = 0; begin < nodes.size();) {
    size_t end = begin;
    while (end < nodes.size() && end - begin < kPieceNodesMax &&
           (nodes[end].work == nullptr || IsForDevice(*nodes[end].work))) {
      ++end;
    }
    Item item;
    item.begin = static_cast<uint32_t>(begin);
    const bool captured =
        nodes[begin].work != nullptr && std::holds_alternative<LibraryWork>(*nodes[begin].work);
    if (end > begin + 1 || captured) {
      const CUresult result = Piece::Make(nodes, begin, end, *context, value, &item.piece);
      if (result != CUDA_SUCCESS) return result;
    } else {
      item.step = nodes[begin].work;
      end = begin + 1;
    }
    items.push_back(std::move(item));
    begin = end;
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
