// Says whether a session may use all that a library call touches, as far as its parameters say so:
// vectors and matrices of cuBLAS by their rows (ipc/calls/blas_operands.inc), those of cublasLt by
// their layouts. What pointers in device memory point at only the device can see.
// Thread safety: as the Session's.
#pragma once

#include <span>

#include "ipc/calls/blas_operands.h"
#include "ipc/codec.h"
#include "ipc/door.h"

namespace ipc {

// The row of a function of cuBLAS that touches device memory; null for all else.
const blas::Family* BlasFamilyOf(Op op);

// Of one decoded call. tags[i]: of scalar i, whose value, when it was sent, values[i] points at the
// address of.
bool AcceptsOperands(const blas::Family* family, std::span<const Param> params, Values values,
                     const ScalarTag* tags, Session& session);

// The bytes that a scalar on the device has, as far as its role says; at least 1.
uint64_t DeviceScalarBytes(std::span<const Param> params, size_t index, Values values);

}  // namespace ipc
