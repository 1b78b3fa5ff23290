#include "softgpu/cublas/core/openblas.h"

#include <condition_variable>
#include <mutex>

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
    std::unique_lock<std::mutex> lock(mutex_);
    freed_.wait(lock, [this] { return free_ > 0; });
    --free_;
  }
  void Free() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      ++free_;
    }
    freed_.notify_one();
  }

 private:
  Places() { openblas_set_num_threads(1); }

  std::mutex mutex_;
  std::condition_variable freed_;
  int free_ = kConcurrentCallsMax;
};

}  // namespace

OneOpenBlasCall::OneOpenBlasCall() { Places::Get().Take(); }

OneOpenBlasCall::~OneOpenBlasCall() { Places::Get().Free(); }

}  // namespace softgpu::cublas
