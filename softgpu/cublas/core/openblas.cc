#include "softgpu/cublas/core/openblas.h"

#include "base/mutex.h"

namespace softgpu::cublas {
namespace {

// Far below OpenBLAS's number of buffers, above the cores that we would ever use at once.
constexpr int kConcurrentCallsMax = 32;

// Not std::counting_semaphore: the one of GCC 12 can miss a wake-up.
class Places {
 public:
  static Places& Get() {
    static Places* const places = new Places;  // never destroyed: streams may outlive main()
    return *places;
  }
  void Take() {
    base::MutexLock lock(&mutex_);
    while (free_ == 0) freed_.Wait(&mutex_);
    --free_;
  }
  void Free() {
    {
      const base::MutexLock lock(&mutex_);
      ++free_;
    }
    freed_.NotifyOne();
  }

 private:
  Places() { openblas_set_num_threads(1); }

  base::Mutex mutex_;
  base::CondVar freed_;
  int free_ GUARDED_BY(mutex_) = kConcurrentCallsMax;
};

}  // namespace

OneOpenBlasCall::OneOpenBlasCall() { Places::Get().Take(); }

OneOpenBlasCall::~OneOpenBlasCall() { Places::Get().Free(); }

}  // namespace softgpu::cublas
