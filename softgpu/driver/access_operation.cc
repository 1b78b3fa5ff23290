#include "softgpu/driver/access_operation.h"

#include <cstdio>

#include "softgpu/driver/driver.h"
#include "softgpu/driver/fault_record.h"

namespace softgpu {

CUresult ReportAccess(const std::string& what, uint64_t address, CUstream stream) {
  char missing[64];
  std::snprintf(missing, sizeof missing, ": 0x%llx is not mapped",
                static_cast<unsigned long long>(address));
  ReportFault(CUDA_ERROR_ILLEGAL_ADDRESS, stream,
              what + missing + Driver::Get().memory_map().Near(address));
  return CUDA_ERROR_ILLEGAL_ADDRESS;
}

}  // namespace softgpu
