#include "shim/blas_calls.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <optional>

#include "shim/client.h"
#include "shim/contexts.h"
#include "shim/forward.h"
#include "shim/graphs/library.h"
#include "shim/results.h"
#include "shim/send.h"
#include "shim/stderr_once.h"
#include "shim/streams.h"
#include "shim/sync.h"

namespace shim {
namespace {

struct StatusWords {
  cublasStatus_t status;
  const char* name;
  const char* text;
};
constexpr StatusWords kStatuses[] = {
#define STATUS(name, text) {name, #name, text},
#include "ipc/calls/blas_status.inc"
#undef STATUS
};

void* HandleAt(ipc::Values values, size_t i) { return *static_cast<void* const*>(values[i]); }

// cublasLt's name for a cuBLAS handle, made when it is first used as one.
CUresult LtCompanion(BlasHandle* handle, uint32_t wire) {
  if (handle->lt != nullptr) return CUDA_SUCCESS;
  const ipc::Arguments<ipc::Op::cublasLtCreate> arguments(&handle->lt);
  const uint32_t status = CallValues(ipc::Op::cublasLtCreate, wire, arguments.values());
  return status == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

bool FirstIs(const ipc::Row& row, ipc::HandleKind kind) {
  return !row.params.empty() && row.params[0].role.kind == ipc::RoleKind::kHandle &&
         row.params[0].handle == kind;
}

// Of what a library's answer to a call depends on: sizes, enumerations, and which pointers are
// null. Never 0.
uint64_t AcceptanceKey(ipc::Op op, const ipc::Row& row, ipc::Values values) {
  constexpr uint64_t kMultiplier = 0x9e3779b97f4a7c15;
  uint64_t key = static_cast<uint64_t>(op) + 1;
  for (size_t i = 1; i < row.params.size(); ++i) {
    const ipc::Param& param = row.params[i];
    uint64_t value = 0;
    if (param.role.kind == ipc::RoleKind::kValue) {
      std::memcpy(&value, values[i], std::min<size_t>(param.bytes, sizeof value));
    } else {
      value = HandleAt(values, i) != nullptr;
    }
    key = (key ^ value) * kMultiplier;
    key ^= key >> 32;
  }
  return key | 1;
}

// Queues a call like one that was accepted before; waits for the answer to any other.
uint32_t PostOrCall(ipc::Op op, const ipc::Row& row, BlasHandle* handle, ipc::Values values) {
  const uint64_t key = AcceptanceKey(op, row, values);
  uint64_t& accepted = handle->accepted[(key >> 8) % handle->accepted.size()];
  if (accepted == key) return PostValues(op, handle->wire, values);
  const uint32_t status = CallValues(op, handle->wire, values);
  if (status == 0) accepted = key;
  return status;
}

// Adds the call to the capture of the stream, and returns the call's status. Returns nothing when
// the stream does not capture: the call is to be sent.
std::optional<uint32_t> Captured(const Stream& stream, ipc::Op op, uint32_t wire,
                                 ipc::Values values) {
  uint32_t status = 0;
  const std::optional<CUresult> result = graphs::CaptureCall(stream, op, wire, values, &status);
  if (!result.has_value()) return std::nullopt;
  return status != 0 ? status : uint32_t{StatusOf(*result)};
}

// cublasGetVersion without a handle, which programs call before they make a handle. A message needs
// a handle to be sent for, so the worker is asked by cublasGetProperty, which takes no handle.
uint32_t VersionWithoutHandle(ipc::Values values) {
  int* const version = static_cast<int*>(HandleAt(values, 1));
  if (version == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  Context* context = nullptr;
  uint64_t value = 0;
  const CUresult result = BlasContext(&context, &value);
  if (result != CUDA_SUCCESS) return StatusOf(result);
  int parts[] = {0, 0, 0};
  constexpr libraryPropertyType kParts[] = {MAJOR_VERSION, MINOR_VERSION, PATCH_LEVEL};
  for (size_t i = 0; i < std::size(kParts); ++i) {
    const ipc::Arguments<ipc::Op::cublasGetProperty> arguments(kParts[i], &parts[i]);
    const uint32_t status =
        CallValues(ipc::Op::cublasGetProperty, context->wire, arguments.values());
    if (status != CUBLAS_STATUS_SUCCESS) return status;
  }
  *version = parts[0] * 10000 + parts[1] * 100 + parts[2];  // CUBLAS_VERSION in its header
  return CUBLAS_STATUS_SUCCESS;
}

}  // namespace

cublasStatus_t StatusOf(CUresult result) {
  switch (result) {
    case CUDA_SUCCESS:
      return CUBLAS_STATUS_SUCCESS;
    case CUDA_ERROR_OUT_OF_MEMORY:
      return CUBLAS_STATUS_ALLOC_FAILED;
    case CUDA_ERROR_INVALID_VALUE:
    case CUDA_ERROR_INVALID_HANDLE:
      return CUBLAS_STATUS_INVALID_VALUE;
    case CUDA_ERROR_NOT_SUPPORTED:
      return CUBLAS_STATUS_NOT_SUPPORTED;
    case CUDA_ERROR_NOT_INITIALIZED:
    case CUDA_ERROR_INVALID_CONTEXT:
    case CUDA_ERROR_MPS_CONNECTION_FAILED:
      return CUBLAS_STATUS_NOT_INITIALIZED;
    default:
      return CUBLAS_STATUS_EXECUTION_FAILED;
  }
}

const char* BlasStatusName(cublasStatus_t status) {
  for (const StatusWords& words : kStatuses) {
    if (words.status == status) return words.name;
  }
  return "CUBLAS_STATUS_UNKNOWN";
}

const char* BlasStatusText(cublasStatus_t status) {
  for (const StatusWords& words : kStatuses) {
    if (words.status == status) return words.text;
  }
  return "unknown status";
}

// As the vendor's libraries do: a thread without a current context gets the primary context of
// device 0, which stays current afterwards.
CUresult BlasContext(Context** context, uint64_t* value) {
  if (const CUresult result = Client::Process().Initialize(); result != CUDA_SUCCESS) return result;
  if (State::Process().Current(context, value) == CUDA_SUCCESS) return CUDA_SUCCESS;
  if (const CUresult result = Contexts::RetainPrimary(0, value); result != CUDA_SUCCESS)
    return result;
  ThisThread().contexts.push_back(*value);
  return State::Process().Current(context, value);
}

uint32_t ForwardCublas(ipc::Op op, ipc::Values values) {
  const ipc::Row& row = ipc::RowOf(op);
  if (op == ipc::Op::cublasGetVersion_v2 && HandleAt(values, 0) == nullptr)
    return VersionWithoutHandle(values);
  if (Client::Process().Ready() != CUDA_SUCCESS) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (!FirstIs(row, ipc::HandleKind::kBlas)) {
    Context* context = nullptr;
    uint64_t value = 0;
    const CUresult result = BlasContext(&context, &value);
    return result == CUDA_SUCCESS ? CallValues(op, context->wire, values)
                                  : uint32_t{StatusOf(result)};
  }
  BlasHandle* const handle =
      BlasState::Process().handles.Find(reinterpret_cast<uint64_t>(HandleAt(values, 0)));
  if (handle == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (row.route == ipc::Route::kSync) return CallValues(op, handle->wire, values);
  const Stream* const stream =
      handle->stream == nullptr
          ? Streams::Process().Legacy(handle->device)
          : Streams::Process().table.Find(reinterpret_cast<uint64_t>(handle->stream));
  if (stream == nullptr) return CUBLAS_STATUS_EXECUTION_FAILED;
  if (const std::optional<uint32_t> captured = Captured(*stream, op, handle->wire, values)) {
    handle->captured = true;
    return *captured;
  }
  if (const CUresult result = Streams::JoinBefore(*stream); result != CUDA_SUCCESS)
    return StatusOf(result);
  // The encoder adds a result for each pointer to host memory that the call writes through.
  HostResults& results = HostResults::OfThisThread();
  results.Drop();
  const uint32_t status = PostOrCall(op, row, handle, values);
  if (status != 0) return status;
  return StatusOf(results.empty() ? Throttle(*stream) : results.Deliver(*stream));
}

uint32_t ForwardCublasLt(ipc::Op op, ipc::Values values) {
  const ipc::Row& row = ipc::RowOf(op);
  Context* context = nullptr;
  uint64_t context_value = 0;
  if (const CUresult result = BlasContext(&context, &context_value); result != CUDA_SUCCESS) {
    return StatusOf(result);
  }
  Stream* stream = nullptr;
  if (const CUresult result = ResolveStreams(row, values, *context, context_value, &stream);
      result != CUDA_SUCCESS) {
    return StatusOf(result);
  }
  std::array<const void*, ipc::kParamsMax> replaced;
  if (FirstIs(row, ipc::HandleKind::kBlasLt)) {
    const uint64_t first = reinterpret_cast<uint64_t>(HandleAt(values, 0));
    if (BlasHandle* const handle = BlasState::Process().handles.Find(first); handle != nullptr) {
      if (const CUresult result = LtCompanion(handle, context->wire); result != CUDA_SUCCESS) {
        return StatusOf(result);
      }
      std::copy_n(values, row.params.size(), replaced.begin());
      replaced[0] = &handle->lt;
      values = replaced.data();
    }
  }
  if (row.route == ipc::Route::kSync) return CallValues(op, context->wire, values);
  if (stream != nullptr) {
    if (const std::optional<uint32_t> captured = Captured(*stream, op, context->wire, values)) {
      // Its descriptors may go before the graph.
      Client::Process().log()->SetIncomplete(ipc::kCapturedLibrary);
      return *captured;
    }
  }
  const uint32_t status = PostValues(op, context->wire, values);
  return status == 0 && stream != nullptr ? uint32_t{StatusOf(Throttle(*stream))} : status;
}

}  // namespace shim
