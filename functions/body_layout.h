// Where the parameters of an encoded call lie (ipc/codec.h tells the form).
//
// Thread safety: functions without state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "ipc/calls.h"
#include "ipc/roles.h"

namespace functions {

struct BodyField {
  size_t param = 0;  // of the row
  ipc::RoleKind role = ipc::RoleKind::kValue;
  size_t offset = 0;
  size_t bytes = 0;
};

// The fixed part of a call's body, parameter by parameter. What follows are byte ranges.
std::vector<BodyField> FixedFieldsOf(ipc::Op op);

// The calls that carry a kernel's parameters: Launch and the nodes of graphs.
bool CarriesKernel(ipc::Op op);
// Where the kernel's packed parameters lie in such a call. Nothing: the body is shorter than it
// says.
struct Part {
  size_t offset = 0;
  size_t bytes = 0;
};
std::optional<Part> KernelParametersOf(ipc::Op op, std::span<const std::byte> body);

// Sequence numbers of the recorded session mean nothing elsewhere: zeros in their place. REQUIRES:
// a body that the client's codec made for this op.
void ClearMarks(ipc::Op op, std::span<std::byte> body);

}  // namespace functions
