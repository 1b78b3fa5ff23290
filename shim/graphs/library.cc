#include "shim/graphs/library.h"

#include <memory>
#include <mutex>

#include "shim/graphs/piece.h"
#include "shim/rebuild/record.h"
#include "shim/results.h"
#include "shim/send.h"

namespace shim::graphs {

std::optional<CUresult> CaptureCall(const Stream& stream, ipc::Op op, uint32_t wire,
                                    ipc::Values values, uint32_t* status) {
  if (!AnyCapture() || IsRecorded(op)) return std::nullopt;  // settings are no work
  const std::shared_ptr<Capture> capture = Capture::Of(stream);
  if (capture == nullptr) return RefuseWork(stream);
  if (capture->status() != CU_STREAM_CAPTURE_STATUS_ACTIVE)
    return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  static std::mutex* const one_at_a_time = new std::mutex;
  const std::lock_guard<std::mutex> lock(*one_at_a_time);
  std::shared_ptr<Piece> piece;
  CUresult result = Piece::BeginCapture(stream, &piece);
  if (result != CUDA_SUCCESS) return result;
  HostResults& results = HostResults::OfThisThread();
  results.Drop();
  *status = CallIntoCapture(op, wire, values, piece->value());
  result = piece->EndCapture();
  if (*status != 0) return result;
  if (!results.empty()) {  // the host would have to wait for one
    results.Drop();
    capture->Invalidate();
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  return result == CUDA_SUCCESS ? capture->Add(stream, LibraryWork{piece}) : result;
}

}  // namespace shim::graphs
