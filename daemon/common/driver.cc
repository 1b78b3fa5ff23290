#include "daemon/common/driver.h"

#include <dlfcn.h>

#include "absl/strings/str_cat.h"
#include "ipc/install.h"

namespace common {

absl::StatusOr<Driver> LoadDriver(ipc::control::DeviceKind kind) {
  const bool soft = kind == ipc::control::DeviceKind::kSoft;
  const std::string path = soft ? ipc::LibraryPath("softgpu", "libcuda.so.1") : "libcuda.so.1";
  Driver driver;
  driver.kind = kind;
  driver.library = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (driver.library == nullptr) {
    const char* const reason = dlerror();
    return absl::NotFoundError(
        absl::StrCat("cannot load ", path, " (", reason, "); ",
                     soft ? "install or build Laneway completely"
                          : "install the NVIDIA driver or use --device=soft"));
  }
  const char* missing = nullptr;
#define LANEWAY_FIND(name)                                                             \
  driver.name = reinterpret_cast<decltype(driver.name)>(dlsym(driver.library, #name)); \
  if (driver.name == nullptr) missing = #name;
  LANEWAY_PROCESS_DRIVER_FUNCTIONS(LANEWAY_FIND)
#undef LANEWAY_FIND
  if (missing != nullptr) {
    return absl::UnimplementedError(
        absl::StrCat(path, " has no ", missing, "; Laneway needs a driver for CUDA 13"));
  }
  driver.cuLogsRegisterCallback = reinterpret_cast<decltype(driver.cuLogsRegisterCallback)>(
      dlsym(driver.library, "cuLogsRegisterCallback"));
  driver.cuLogsUnregisterCallback = reinterpret_cast<decltype(driver.cuLogsUnregisterCallback)>(
      dlsym(driver.library, "cuLogsUnregisterCallback"));
  driver.softgpuSetPrintHandler = reinterpret_cast<decltype(driver.softgpuSetPrintHandler)>(
      dlsym(driver.library, "softgpuSetPrintHandler"));
  driver.softgpuRunningStream = reinterpret_cast<decltype(driver.softgpuRunningStream)>(
      dlsym(driver.library, "softgpuRunningStream"));
  driver.softgpuGetFault =
      reinterpret_cast<decltype(driver.softgpuGetFault)>(dlsym(driver.library, "softgpuGetFault"));
  return driver;
}

absl::Status StartDriver(const Driver& driver) {
  std::string words;
  CUlogsCallbackHandle listener = nullptr;
  const bool listens = driver.cuLogsRegisterCallback != nullptr &&
                       driver.cuLogsUnregisterCallback != nullptr &&
                       driver.cuLogsRegisterCallback(
                           [](void* data, CUlogLevel, char* text, size_t length) {
                             static_cast<std::string*>(data)->assign(text, length);
                           },
                           &words, &listener) == CUDA_SUCCESS;
  const CUresult result = driver.cuInit(0);
  if (listens) driver.cuLogsUnregisterCallback(listener);
  if (result == CUDA_SUCCESS) return absl::OkStatus();
  if (!words.empty()) words = absl::StrCat(" (", words, ")");
  return absl::FailedPreconditionError(absl::StrCat("the driver does not start: cuInit returns ",
                                                    ErrorName(driver, result), words,
                                                    "; run laneway doctor"));
}

std::string ErrorName(const Driver& driver, CUresult result) {
  const char* name = nullptr;
  if (driver.cuGetErrorName(result, &name) == CUDA_SUCCESS && name != nullptr) return name;
  return absl::StrCat("error ", static_cast<int>(result));
}

}  // namespace common
