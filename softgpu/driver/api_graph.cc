// Graphs and their shape: creation, nodes and edges, clones, user objects.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <utility>
#include <vector>

#include "graphs/conditional.h"
#include "graphs/list.h"
#include "softgpu/driver/api.h"
#include "softgpu/driver/driver.h"
#include "softgpu/driver/error_log.h"
#include "softgpu/driver/graph.h"
#include "softgpu/driver/graph_handles.h"

namespace softgpu::api {
namespace {

std::shared_ptr<UserObject> FindUserObject(CUuserObject handle) {
  return Driver::Get().user_objects.Find(handle);
}

CUuserObject EnterUserObject(const std::shared_ptr<UserObject>& object) {
  return static_cast<CUuserObject>(Driver::Get().user_objects.Add(object));
}

}  // namespace

#include "ipc/calls/graph_shape.inc"

}  // namespace softgpu::api
