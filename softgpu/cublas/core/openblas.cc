#include "softgpu/cublas/core/openblas.h"

#include <mutex>
#include <semaphore>

namespace softgpu::cublas {
namespace {

// Far below OpenBLAS's number of buffers, above the cores that we would ever use at once.
constexpr int kConcurrentCallsMax = 32;

std::counting_semaphore<kConcurrentCallsMax>& Places() {
  static std::counting_semaphore<kConcurrentCallsMax>& places =
      *new std::counting_semaphore<kConcurrentCallsMax>(kConcurrentCallsMax);
  return places;
}

}  // namespace

OneOpenBlasCall::OneOpenBlasCall() {
  static std::once_flag once;
  std::call_once(once, [] { openblas_set_num_threads(1); });
  Places().acquire();
}

OneOpenBlasCall::~OneOpenBlasCall() { Places().release(); }

}  // namespace softgpu::cublas
