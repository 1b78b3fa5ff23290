#include "ipc/codec_client.h"

#include <cassert>

#include "ipc/request_encoder.h"

namespace ipc {

namespace {

using LaunchCall = CallOf<roles::params::kLaunch>;

}  // namespace

uint32_t StatusOf(Library library, Refusal refusal) {
  const bool driver = library == Library::kDriver || library == Library::kLaneway;
  switch (refusal) {
    case Refusal::kNone:
      return 0;
    case Refusal::kBadHandle:
      return driver ? uint32_t{CUDA_ERROR_INVALID_HANDLE} : uint32_t{CUBLAS_STATUS_NOT_INITIALIZED};
    case Refusal::kBadAddress:
    case Refusal::kBadValue:
    case Refusal::kTooLong:
      return driver ? uint32_t{CUDA_ERROR_INVALID_VALUE} : uint32_t{CUBLAS_STATUS_INVALID_VALUE};
    case Refusal::kTooManyHandles:
      return driver ? uint32_t{CUDA_ERROR_OUT_OF_MEMORY} : uint32_t{CUBLAS_STATUS_ALLOC_FAILED};
    case Refusal::kNotSupported:
      return driver ? uint32_t{CUDA_ERROR_NOT_SUPPORTED} : uint32_t{CUBLAS_STATUS_NOT_SUPPORTED};
  }
  assert(false);
  return 0;
}

size_t RequestBytesMax(Op op, Values values) {
  return op == Op::Launch ? BodyBytesMax(LaunchCall(), values) : BodyBytesMax(AnyCall(op), values);
}

Encoded EncodeRequest(Op op, Values values, Caller& caller, Writer* request) {
  assert(RowOf(op).remote);
  if (op == Op::Launch) return RequestEncoder(LaunchCall(), values, caller, *request).Run();
  return RequestEncoder(AnyCall(op), values, caller, *request).Run();
}

void DeliverNames(const Encoded& encoded) {
  for (size_t i = 0; i < encoded.new_names; ++i) *encoded.names[i].out = encoded.names[i].value;
}

bool TakeReply(Op op, Values values, const Encoded& encoded, std::span<const std::byte> reply,
               Caller& caller, uint32_t* status) {
  const Row& row = RowOf(op);
  Reader in(reply);
  if (!in.Get(status)) return false;
  if (*status == 0) {
    DeliverNames(encoded);
  } else {
    for (size_t i = 0; i < encoded.new_names; ++i) {
      caller.Forget(encoded.names[i].kind, encoded.names[i].id);
    }
    if (in.AtEnd()) return true;  // refused before the call could write a log
  }
  for (const bool ranges : {false, true}) {
    for (const size_t i : Members(row.sets.returned)) {
      const Role& role = row.params[i].role;
      if (ranges != (role.kind == RoleKind::kBytesOut)) continue;
      void* to = PointerAt(values[i]);
      if (to == nullptr || (*status != 0 && !role.on_failure)) continue;
      if (!in.Raw(to, ObjectBytes(row.params, i, values))) return false;
    }
  }
  return in.AtEnd();
}

}  // namespace ipc
