#include "functions/body_layout.h"

#include <algorithm>
#include <cstring>

#include "ipc/calls/laneway_calls.h"
#include "ipc/codec.h"

namespace functions {
namespace {

size_t FixedBytes(const ipc::Param& param) {
  using ipc::RoleKind;
  if (ipc::HasPresence(param.role.kind)) return 1;
  switch (param.role.kind) {
    case RoleKind::kValue:
      return param.bytes;
    case RoleKind::kCString:
    case RoleKind::kHandle:
    case RoleKind::kEndHandle:
    case RoleKind::kStream:
    case RoleKind::kNewHandle:
      return sizeof(uint32_t);
    case RoleKind::kDevicePtr:
    case RoleKind::kResult:
      return sizeof(uint64_t);
    case RoleKind::kScalar:
      return 1 + ipc::kScalarBytes;
    default:  // nothing crosses
      return 0;
  }
}

}  // namespace

std::vector<BodyField> FixedFieldsOf(ipc::Op op) {
  std::vector<BodyField> fields;
  size_t offset = 0;
  const std::span<const ipc::Param> params = ipc::RowOf(op).params;
  for (size_t i = 0; i < params.size(); ++i) {
    const size_t bytes = FixedBytes(params[i]);
    fields.push_back({i, params[i].role.kind, offset, bytes});
    offset += bytes;
  }
  return fields;
}

bool CarriesKernel(ipc::Op op) {
  return op == ipc::Op::Launch || op == ipc::Op::GraphKernel || op == ipc::Op::GraphSetKernel;
}

// The parameters are the last range, and their size is the last parameter.
std::optional<Part> KernelParametersOf(ipc::Op op, std::span<const std::byte> body) {
  const BodyField size = FixedFieldsOf(op).back();
  uint32_t bytes = 0;
  if (body.size() < size.offset + sizeof bytes) return std::nullopt;
  std::memcpy(&bytes, body.data() + size.offset, sizeof bytes);
  if (bytes > body.size() - (size.offset + sizeof bytes)) return std::nullopt;
  return Part{body.size() - bytes, bytes};
}

void ClearMarks(ipc::Op op, std::span<std::byte> body) {
  for (const BodyField& field : FixedFieldsOf(op)) {
    if (field.role != ipc::RoleKind::kValue || field.bytes != sizeof(ipc::Mark)) continue;
    std::fill_n(body.begin() + static_cast<ptrdiff_t>(field.offset), field.bytes, std::byte{0});
  }
}

}  // namespace functions
