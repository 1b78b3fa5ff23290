#include "softgpu/driver/work.h"

#include <iterator>

#include "softgpu/driver/context.h"
#include "softgpu/driver/graph_memory.h"
#include "softgpu/driver/host_function.h"
#include "softgpu/driver/memory_operation.h"

namespace softgpu {
namespace {

// In the order of the variant's alternatives.
constexpr CUgraphNodeType kTypes[] = {
    CU_GRAPH_NODE_TYPE_KERNEL,     CU_GRAPH_NODE_TYPE_MEMCPY,       CU_GRAPH_NODE_TYPE_MEMSET,
    CU_GRAPH_NODE_TYPE_HOST,       CU_GRAPH_NODE_TYPE_GRAPH,        CU_GRAPH_NODE_TYPE_EMPTY,
    CU_GRAPH_NODE_TYPE_WAIT_EVENT, CU_GRAPH_NODE_TYPE_EVENT_RECORD, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP,
    CU_GRAPH_NODE_TYPE_MEM_ALLOC,  CU_GRAPH_NODE_TYPE_MEM_FREE,     CU_GRAPH_NODE_TYPE_CONDITIONAL,
};
static_assert(std::size(kTypes) == std::variant_size_v<Work>);

}  // namespace

CUgraphNodeType TypeOf(const Work& work) { return kTypes[work.index()]; }

CUresult MakeOperationOf(const Work& work, const std::shared_ptr<Context>& context,
                         std::unique_ptr<Operation>* operation) {
  if (const KernelWork* const kernel = std::get_if<KernelWork>(&work)) {
    *operation = MakeLaunch(*kernel);
    return CUDA_SUCCESS;
  }
  if (const MemcpyWork* const copy = std::get_if<MemcpyWork>(&work)) {
    CopyBox box;
    const CUresult result = BoxOf(copy->params, &box);
    if (result != CUDA_SUCCESS) return result;
    *operation = MakeCopy(box);
    return CUDA_SUCCESS;
  }
  if (const MemsetWork* const set = std::get_if<MemsetWork>(&work)) {
    *operation = MakeFill(set->fill);
    return CUDA_SUCCESS;
  }
  if (const HostWork* const host = std::get_if<HostWork>(&work)) {
    *operation = MakeHostFunction(host->function, host->data);
    return CUDA_SUCCESS;
  }
  if (const MemoryWork* const memory = std::get_if<MemoryWork>(&work)) {
    return MakeMemoryOperation(context, memory->items, operation);
  }
  if (const AllocateWork* const allocate = std::get_if<AllocateWork>(&work)) {
    *operation = MakeOperation([memory = allocate->memory] {
      memory->Allocate();
      return CUDA_SUCCESS;
    });
    return CUDA_SUCCESS;
  }
  if (const FreeWork* const free = std::get_if<FreeWork>(&work)) {
    *operation = MakeOperation([address = free->address] {
      GraphMemory::Free(address);
      return CUDA_SUCCESS;
    });
    return CUDA_SUCCESS;
  }
  *operation = nullptr;
  return CUDA_SUCCESS;
}

}  // namespace softgpu
