#include "daemon/worker/libraries.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "daemon/common/child_main.h"
#include "ipc/driver_table.h"
#include "ipc/install.h"

namespace worker {

absl::Status LoadLibraries(ipc::control::DeviceKind kind, Environment* environment) {
  static ipc::DriverTable driver;
  static ipc::CublasTable cublas;
  static ipc::CublasLtTable cublaslt;
  const auto path = [kind](const std::string& name) {
    return kind == ipc::control::DeviceKind::kSoft ? ipc::LibraryPath("softgpu", name) : name;
  };
  const absl::Status loaded = ipc::LoadDriver(path("libcuda.so.1"), &driver);
  if (!loaded.ok()) return loaded;
  environment->driver = &driver;

  const absl::Status lt = ipc::LoadCublasLt(path("libcublasLt.so.13"), &cublaslt);
  if (lt.ok()) environment->cublaslt = &cublaslt;
  const absl::Status blas = ipc::LoadCublas(path("libcublas.so.13"), &cublas);
  if (blas.ok()) environment->cublas = &cublas;
  for (const absl::Status& status : {lt, blas}) {
    if (status.ok()) continue;
    common::Log("worker",
                absl::StrCat("programs get \"not supported\" from a library that is not here: ",
                             status.message()));
  }
  return absl::OkStatus();
}

}  // namespace worker
