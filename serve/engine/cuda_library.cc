#include "serve/engine/cuda_library.h"

#include <dlfcn.h>

#include "absl/strings/str_cat.h"

namespace serve::engine {
namespace {

// Looks names up in one library, and keeps the first that is missing.
class Library {
 public:
  explicit Library(const char* name) : name_(name), handle_(dlopen(name, RTLD_NOW | RTLD_LOCAL)) {
    if (handle_ == nullptr)
      fault_ = absl::StrCat(name_, " cannot be loaded (", dlerror(),
                            "); start this program by `laneway run`, or install CUDA 13");
  }
  template <typename Function>
  void Find(const char* name, Function* function) {
    if (handle_ == nullptr) return;
    *function = reinterpret_cast<Function>(dlsym(handle_, name));
    if (*function == nullptr && fault_.empty())
      fault_ = absl::StrCat(name_, " has no ", name, "; it must be of CUDA 13");
  }
  absl::Status status() const {
    return fault_.empty() ? absl::OkStatus() : absl::FailedPreconditionError(fault_);
  }

 private:
  std::string name_;
  void* handle_;
  std::string fault_;
};

absl::Status Load(Cuda* cuda) {
  Library driver("libcuda.so.1");
#define SERVE_FIND(name) driver.Find(#name, &cuda->name);
  SERVE_CUDA_FUNCTIONS(SERVE_FIND)
#undef SERVE_FIND
  if (!driver.status().ok()) return driver.status();
  Library blas("libcublas.so.13");
#define SERVE_FIND(name) blas.Find(#name, &cuda->name);
  SERVE_BLAS_FUNCTIONS(SERVE_FIND)
#undef SERVE_FIND
  if (!blas.status().ok()) return blas.status();
  return cuda->StatusOf(cuda->cuInit(0), "starting CUDA");
}

}  // namespace

absl::Status Cuda::StatusOf(CUresult result, std::string_view what) const {
  if (result == CUDA_SUCCESS) return absl::OkStatus();
  const char* name = nullptr;
  const char* text = nullptr;
  cuGetErrorName(result, &name);
  cuGetErrorString(result, &text);
  const std::string sentence =
      absl::StrCat(std::string(what), " failed: ", text == nullptr ? "" : text, " (",
                   name == nullptr ? "?" : name, ", ", static_cast<int>(result), ")");
  return result == CUDA_ERROR_OUT_OF_MEMORY ? absl::ResourceExhaustedError(sentence)
                                            : absl::UnavailableError(sentence);
}

absl::Status Cuda::StatusOf(cublasStatus_t result, std::string_view what) const {
  if (result == CUBLAS_STATUS_SUCCESS) return absl::OkStatus();
  const std::string sentence =
      absl::StrCat(std::string(what), " failed: ", cublasGetStatusString(result));
  return result == CUBLAS_STATUS_ALLOC_FAILED ? absl::ResourceExhaustedError(sentence)
                                              : absl::UnavailableError(sentence);
}

absl::StatusOr<const Cuda*> LoadCuda() {
  static Cuda cuda;
  static const absl::Status status = Load(&cuda);
  if (!status.ok()) return status;
  return &cuda;
}

}  // namespace serve::engine
