// Graphs and their shape: creation, nodes and edges, clones, user objects.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <utility>
#include <vector>

#include "graphs/conditional.h"
#include "graphs/list.h"
#include "shim/client.h"
#include "shim/driver/graph_lookup.h"
#include "shim/driver/local.h"
#include "shim/driver/ready.h"

namespace local {
namespace {

std::shared_ptr<UserObject> FindUserObject(CUuserObject program) {
  return Objects::Process().user_objects.Find(program);
}

CUuserObject EnterUserObject(const std::shared_ptr<UserObject>& object) {
  return reinterpret_cast<CUuserObject>(Objects::Process().user_objects.Add(object));
}

}  // namespace

#include "ipc/calls/graph_shape.inc"

}  // namespace local
