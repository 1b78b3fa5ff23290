#include "softgpu/driver/call_scope.h"

#include <set>
#include <string>

#include "base/mutex.h"
#include "softgpu/driver/driver.h"
#include "softgpu/driver/error_log.h"
#include "softgpu/driver/unlisted.h"

namespace softgpu {

CUresult CallScope::Check(CallTraits traits) const {
  if (thread_.in_callback && !traits.in_callback) {
    return Fail(CUDA_ERROR_NOT_PERMITTED, "a host function must not call the driver");
  }
  if (!traits.before_init && !Driver::Ready()) {
    return Driver::Forked() ? CUDA_ERROR_NOT_INITIALIZED
                            : Fail(CUDA_ERROR_NOT_INITIALIZED, "cuInit has not been called");
  }
  if (!traits.after_fault) return Driver::Get().StickyError();
  return CUDA_SUCCESS;
}

CUresult CallScope::NotSupported(std::string_view reason) const {
  static base::Mutex* const mutex = new base::Mutex;
  static std::set<std::string>* const logged = new std::set<std::string>;
  bool first = false;
  {
    base::MutexLock lock(mutex);
    first = logged->insert(name_).second;
  }
  if (first) {
    Fail(CUDA_ERROR_NOT_SUPPORTED,
         "the software GPU does not have this call: " + std::string(reason));
  }
  return CUDA_ERROR_NOT_SUPPORTED;
}

unsigned RefuseUnlisted(const char* name, const char* reason) {
  const CallScope scope(name, false);
  const CUresult refused = scope.Check({});
  return refused != CUDA_SUCCESS ? refused : scope.NotSupported(reason);
}

}  // namespace softgpu
