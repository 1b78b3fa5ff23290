#include "shim/forward.h"

#include <memory>
#include <string>

#include "base/cuda_log_file.h"
#include "base/mutex.h"
#include "ipc/calls.h"
#include "shim/graphs/forwarded.h"
#include "shim/lock_order.h"
#include "shim/send.h"
#include "shim/streams.h"
#include "shim/sync.h"
#include "shim/unlisted.h"

namespace shim {
namespace {

// One flag per row: a denied call is explained once, not once per use.
std::atomic<bool>& SaidOf(ipc::Op op) {
  constexpr size_t kRows = 0x4000;
  static std::atomic<bool>* const said = new std::atomic<bool>[kRows]();
  return said[static_cast<size_t>(op) % kRows];
}

// Of names without a row, the same.
struct Unlisted {
  base::Mutex mutex ACQUIRED_AFTER(lock_order::kKeeping);
  std::map<std::string, std::unique_ptr<std::atomic<bool>>> said GUARDED_BY(mutex);
};

void TellOnce(std::atomic<bool>& said, std::string_view name, std::string_view reason) {
  if (said.exchange(true, std::memory_order_relaxed)) return;
  std::string line = "laneway: ";
  base::AppendToCudaLogFile(line.append(name).append(": ").append(reason));
}

}  // namespace

CUresult ResolveStreams(const ipc::Row& row, ipc::Values values, const Context& context,
                        uint64_t context_value, Stream** used) {
  *used = nullptr;
  for (size_t i = 0; i < row.params.size(); ++i) {
    if (row.params[i].role.kind != ipc::RoleKind::kStream) continue;
    CUstream program = *static_cast<const CUstream*>(values[i]);
    if (program == nullptr && row.per_thread) program = CU_STREAM_PER_THREAD;
    if (const CUresult result = Streams::Process().Use(program, context, context_value, used);
        result != CUDA_SUCCESS) {
      return result;
    }
  }
  return CUDA_SUCCESS;
}

uint32_t ForwardDriver(ipc::Op op, ipc::Values values) {
  const ipc::Row& row = ipc::RowOf(op);
  Context* context = nullptr;
  uint64_t context_value = 0;
  if (const CUresult result = State::Process().Current(&context, &context_value);
      result != CUDA_SUCCESS) {
    return result;
  }
  Stream* stream = nullptr;
  if (const CUresult result = ResolveStreams(row, values, *context, context_value, &stream);
      result != CUDA_SUCCESS) {
    return result;
  }
  if (stream != nullptr && graphs::ConcernsCapture(op)) [[unlikely]] {
    if (const auto captured = graphs::CaptureForwarded(op, values, *stream)) return *captured;
  }
  if (row.route == ipc::Route::kSync) return CallValues(op, context->wire, values);
  const uint32_t result = PostValues(op, context->wire, values);
  return result == CUDA_SUCCESS && stream != nullptr ? uint32_t{Throttle(*stream)} : result;
}

uint32_t Deny(ipc::Op op) {
  const ipc::Row& row = ipc::RowOf(op);
  TellOnce(SaidOf(op), row.name, row.reason);
  return ipc::StatusOf(ipc::LibraryOf(op), ipc::Refusal::kNotSupported);
}

uint32_t DenyUnlisted(const char* name, const char* reason, uint32_t status) {
  static Unlisted* const unlisted = new Unlisted;
  const base::MutexLock lock(&unlisted->mutex);
  std::unique_ptr<std::atomic<bool>>& flag = unlisted->said[name];
  if (flag == nullptr) flag = std::make_unique<std::atomic<bool>>(false);
  TellOnce(*flag, name, reason);
  return status;
}

}  // namespace shim
