// The conditions of a piece's conditional nodes, the nodes' bodies, and where the next node goes.
//
// The client names conditions as its program does, and the driver gives them handles of its own,
// which kernels of the piece get in place of the client's. Thread safety: one session's thread.
#pragma once

#include "ipc/calls/vendor.h"

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "ipc/driver_table.h"

namespace worker {

class PieceConditions {
 public:
  struct Terms {
    uint64_t name = 0;  // the client's
    unsigned default_value = 0;
    unsigned flags = 0;
  };
  // A graph of the driver's that nodes may be put into.
  struct Place {
    CUgraph graph = nullptr;
    unsigned depth = 0;  // bodies around it
  };

  bool empty() const { return handles_.empty(); }
  // Puts the driver's handles into packed parameters, where the client's names are.
  void Translate(std::vector<std::byte>* params) const;

  // The condition that is to have this number. 1: another one's turn is, or the name is taken.
  CUresult Add(const ipc::DriverTable& driver, CUgraph graph, CUcontext context, unsigned number,
               const Terms& terms);
  // The driver's parameters for a conditional node in `place`. CUDA_ERROR_INVALID_VALUE: there is
  // no such condition, or no client asks for so many bodies or such a depth.
  CUresult ParamsFor(const Place& place, unsigned condition, unsigned type, unsigned bodies,
                     CUcontext context, CUgraphNodeParams* params) const;
  // The driver has made the node with this number.
  void Keep(unsigned node, const Place& place, const CUDA_CONDITIONAL_NODE_PARAMS& made);
  // Null: there is no such body.
  const Place* Body(unsigned node, unsigned body) const;

 private:
  std::vector<CUgraphConditionalHandle> handles_;  // by number
  std::unordered_map<uint64_t, CUgraphConditionalHandle> by_name_;
  std::unordered_map<unsigned, std::vector<Place>> bodies_;  // by the node's number
};

}  // namespace worker
