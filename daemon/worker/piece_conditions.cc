#include "daemon/worker/piece_conditions.h"

#include <cstring>

#include "base/find.h"
#include "ipc/calls/limits.h"

namespace worker {

// Parameters of 8 bytes lie at multiples of 8.
void PieceConditions::Translate(std::vector<std::byte>* params) const {
  uint64_t word = 0;
  for (size_t at = 0; at + sizeof word <= params->size(); at += sizeof word) {
    std::memcpy(&word, params->data() + at, sizeof word);
    const CUgraphConditionalHandle* const handle = base::FindOrNull(by_name_, word);
    if (handle != nullptr) std::memcpy(params->data() + at, handle, sizeof *handle);
  }
}

CUresult PieceConditions::Add(const ipc::DriverTable& driver, CUgraph graph, CUcontext context,
                              unsigned number, const Terms& terms) {
  if (number != handles_.size() || by_name_.count(terms.name) != 0) return CUDA_ERROR_INVALID_VALUE;
  if (driver.cuGraphConditionalHandleCreate == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  CUgraphConditionalHandle handle = 0;
  const CUresult result = driver.cuGraphConditionalHandleCreate(&handle, graph, context,
                                                                terms.default_value, terms.flags);
  if (result != CUDA_SUCCESS) return result;
  handles_.push_back(handle);
  by_name_.emplace(terms.name, handle);
  return CUDA_SUCCESS;
}

CUresult PieceConditions::ParamsFor(const Place& place, unsigned condition, unsigned type,
                                    unsigned bodies, CUcontext context,
                                    CUgraphNodeParams* params) const {
  if (condition >= handles_.size() || bodies > ipc::limits::kGraphBodiesMax ||
      place.depth >= ipc::limits::kGraphDepthMax) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  *params = {};
  params->type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
  params->conditional.handle = handles_[condition];
  params->conditional.type = static_cast<CUgraphConditionalNodeType>(type);
  params->conditional.size = bodies;
  params->conditional.ctx = context;
  return CUDA_SUCCESS;
}

void PieceConditions::Keep(unsigned node, const Place& place,
                           const CUDA_CONDITIONAL_NODE_PARAMS& made) {
  std::vector<Place>& bodies = bodies_[node];
  for (unsigned i = 0; i < made.size; ++i) bodies.push_back({made.phGraph_out[i], place.depth + 1});
}

const PieceConditions::Place* PieceConditions::Body(unsigned node, unsigned body) const {
  const std::vector<Place>* const bodies = base::FindOrNull(bodies_, node);
  return bodies != nullptr && body < bodies->size() ? &(*bodies)[body] : nullptr;
}

}  // namespace worker
