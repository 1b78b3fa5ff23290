#include "shim/graphs/flat_node.h"

#include "shim/copy_box.h"
#include "shim/memory.h"

namespace shim::graphs {
namespace {

bool IsSharedBox(const MemcpyWork& work) {
  CopyBox box;
  if (BoxOf(work.params, &box) != CUDA_SUCCESS || box.empty() || box.depth != 1) return false;
  return Memory::PlaceOf(box.rows.to) != Memory::Place::kHost &&
         Memory::PlaceOf(box.rows.from) != Memory::Place::kHost;
}

}  // namespace

bool IsForDevice(const Work& work) {
  if (const MemcpyWork* const copy = std::get_if<MemcpyWork>(&work)) return IsSharedBox(*copy);
  if (const MemsetWork* const fill = std::get_if<MemsetWork>(&work))
    return fill->params.width != 0 && fill->params.height != 0;
  return std::holds_alternative<KernelWork>(work) || std::holds_alternative<EmptyWork>(work) ||
         std::holds_alternative<LibraryWork>(work) || std::holds_alternative<ConditionalWork>(work);
}

}  // namespace shim::graphs
