// Nodes: what they do, in a graph and in an executable graph.
#include <memory>
#include <utility>
#include <vector>

#include "shim/driver/graph_lookup.h"
#include "shim/driver/local.h"
#include "shim/driver/ready.h"

namespace local {
namespace {

using shim::graphs::ChildWork;
using shim::graphs::EmptyWork;
using shim::graphs::EventRecordWork;
using shim::graphs::EventWaitWork;
using shim::graphs::HostWork;
using shim::graphs::KernelWork;
using shim::graphs::MemcpyWork;
using shim::graphs::MemoryWork;
using shim::graphs::MemsetWork;

// Pointers into the node, valid until its parameters change, as the manual says.
CUresult ParamsOfKernel(Node& node, KernelWork& work, CUDA_KERNEL_NODE_PARAMS_v2* params) {
  const shim::Function* const function = shim::State::Process().functions.Find(work.function);
  if (function == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::vector<void*>& pointers = node.content.param_pointers;
  pointers.clear();
  for (const ipc::ParamLayout& param : function->params)
    pointers.push_back(work.params.data() + param.offset);
  *params = {reinterpret_cast<CUfunction>(work.function),
             work.grid[0],
             work.grid[1],
             work.grid[2],
             work.block[0],
             work.block[1],
             work.block[2],
             work.shared_bytes,
             pointers.empty() ? nullptr : pointers.data(),
             nullptr,
             nullptr,
             work.context};
  return CUDA_SUCCESS;
}

const CUDA_MEMSET_NODE_PARAMS_v1& ParamsOf(const MemsetWork& work) { return work.params; }

using local::HandleOf;  // of graphs, beside the one below
CUevent HandleOf(CUevent event) { return event; }

}  // namespace

#include "ipc/calls/graph_nodes.inc"

namespace {

using shim::graphs::ConditionalWork;
using shim::graphs::GraphUse;

::graphs::Conditions& AllConditions() { return Objects::Process().conditions; }

CUresult NumberOfContext(CUcontext program, uint64_t* number) {
  shim::Context* context = nullptr;
  *number = reinterpret_cast<uint64_t>(program);
  if (program == nullptr) return shim::State::Process().Current(&context, number);
  return shim::State::Process().contexts.Find(*number) != nullptr ? CUDA_SUCCESS
                                                                  : CUDA_ERROR_INVALID_CONTEXT;
}

}  // namespace

#include "ipc/calls/graph_conditionals.inc"

namespace {

CUresult AddNode(const NodePlace& place, CUgraphNodeParams* params) {
  if (params != nullptr && params->type == CU_GRAPH_NODE_TYPE_CONDITIONAL)
    return AddConditional(place, &params->conditional);
  return AddNodeOrMemory(place, params, &local::cuGraphAddMemAllocNode,
                         &local::cuGraphAddMemFreeNode);
}

}  // namespace

}  // namespace local
