#include "daemon/worker/registered_file.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/worker/reaper.h"

namespace worker {

bool RegisteredFile::Register(std::string* error) {
  const CUresult result = environment_.driver->cuMemHostRegister_v2(
      file_->base(), ipc::kSessionMemoryBytes,
      CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP);
  registered_ = result == CUDA_SUCCESS;
  if (!registered_) {
    *error =
        absl::StrCat("the driver cannot register the session's shared file (error ", result, ")");
  }
  return registered_;
}

void RegisteredFile::LetGo() {
  if (!std::exchange(registered_, false)) return;
  Later(environment_, [driver = environment_.driver, file = file_] {
    driver->cuMemHostUnregister(file->base());
  });
}

}  // namespace worker
