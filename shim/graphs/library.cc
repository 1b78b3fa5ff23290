#include "shim/graphs/library.h"

#include <memory>

#include "base/mutex.h"
#include "shim/graphs/piece.h"
#include "shim/rebuild/record.h"
#include "shim/results.h"
#include "shim/send.h"

namespace shim::graphs {

std::optional<CUresult> CaptureCall(const Stream& stream, ipc::Op op, uint32_t wire,
                                    ipc::Values values, uint32_t* status) {
  if (!AnyCapture() || IsRecorded(op)) return std::nullopt;  // settings are no work
  const ::graphs::CaptureStream own = CaptureStreamOf(stream);
  const std::optional<Captures::Status> capture = AllCaptures().Describe(own);
  if (!capture.has_value()) return RefuseWork(stream);
  if (capture->invalidated) return ResultOf(Refusal::kInvalidated);
  static base::Mutex* const one_at_a_time = new base::Mutex;
  base::MutexLock lock(one_at_a_time);
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
    return RefuseInCapture(stream, true);
  }
  return result == CUDA_SUCCESS ? CaptureWork(stream, LibraryWork{piece}) : result;
}

}  // namespace shim::graphs
