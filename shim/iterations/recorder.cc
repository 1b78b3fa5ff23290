#include "shim/iterations/recorder.h"

#include "shim/iterations/stream.h"
#include "shim/stderr_once.h"

namespace shim::iterations {

std::unique_ptr<Recorder> Recorder::Open(const char* file) {
  if (file == nullptr || *file == 0) return nullptr;
  std::FILE* const opened = std::fopen(file, "wbe");
  if (opened == nullptr) {
    static std::atomic<bool> said;
    StderrOnce(said, {"cannot write the op stream to ", file, "; check LANEWAY_RECORD_OPS"});
    return nullptr;
  }
  std::fwrite(kStreamMagic, 1, sizeof kStreamMagic, opened);
  return std::unique_ptr<Recorder>(new Recorder(opened));
}

void Recorder::Add(const Op& op, bool marked) {
  const StreamRecord record = RecordOf(op, marked);
  std::fwrite(&record, 1, sizeof record, file_);
}

}  // namespace shim::iterations
