// How programs ask for entry points and for the driver's private tables.
#include <dlfcn.h>

#include <cstring>

#include "ipc/calls/proc_address.h"
#include "shim/driver/entry_address.h"
#include "shim/driver/local.h"
#include "shim/stderr_once.h"

namespace local {
namespace {

constexpr cuuint64_t kKnownLookupFlags =
    CU_GET_PROC_ADDRESS_LEGACY_STREAM | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;

std::atomic<bool> said_export_table;

CUresult Look(const char* symbol, void** function, int version, cuuint64_t flags,
              ipc::EntryStatus* status) {
  if (symbol == nullptr || function == nullptr || *symbol == '\0') return CUDA_ERROR_INVALID_VALUE;
  if (version > CUDA_VERSION || version < 0 || (flags & ~kKnownLookupFlags) != 0)
    return CUDA_ERROR_INVALID_VALUE;
  const bool per_thread = (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0;
  const ipc::Entry entry = ipc::FindEntry(symbol, version, per_thread);
  *status = entry.status;
  *function = entry.status == ipc::EntryStatus::kFound ? shim::EntryAddress(entry.symbol) : nullptr;
  return CUDA_SUCCESS;
}

// Libraries that ask and live with the refusal.
bool IsExempt(const char* base_name) {
  return std::strncmp(base_name, "libnvrtc", 8) == 0 ||
         std::strncmp(base_name, "libnvJitLink", 12) == 0;
}

}  // namespace

CUresult cuGetProcAddress_v2(const char* symbol, void** function, int version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult* status) {
  ipc::EntryStatus found = ipc::EntryStatus::kNoSuchSymbol;
  const CUresult result = Look(symbol, function, version, flags, &found);
  if (result != CUDA_SUCCESS) return result;
  if (status != nullptr) *status = static_cast<CUdriverProcAddressQueryResult>(found);
  return CUDA_SUCCESS;
}

CUresult cuGetProcAddress(const char* symbol, void** function, int version, cuuint64_t flags) {
  ipc::EntryStatus found = ipc::EntryStatus::kNoSuchSymbol;
  const CUresult result = Look(symbol, function, version, flags, &found);
  if (result != CUDA_SUCCESS) return result;
  return found == ipc::EntryStatus::kFound ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

// The driver's private tables. Only a CUDA runtime asks for them. A runtime other than Laneway's
// facade is linked statically into the program or into one of the program's libraries.
CUresult cuGetExportTable(const void** table, const CUuuid*) {
  if (table != nullptr) *table = nullptr;
  Dl_info caller;
  const char* path = "this program";
  if (dladdr(__builtin_return_address(0), &caller) != 0 && caller.dli_fname != nullptr)
    path = caller.dli_fname;
  const char* const slash = std::strrchr(path, '/');
  const char* const name = slash == nullptr ? path : slash + 1;
  if (!IsExempt(name)) {
    shim::StderrOnce(
        said_export_table,
        {name,
         " contains a CUDA runtime of its own, which asks the driver for private tables that "
         "Laneway does not have; build it with `--cudart shared` (nvcc), or run the program "
         "with `laneway run --mode=in-process`"});
  }
  return CUDA_ERROR_NOT_SUPPORTED;
}

}  // namespace local
