// Work of plain code on device memory: a copy, a fill, a word that a stream writes or waits for.
//
// A page without memory is a fault of the device, as it is to a kernel: the stream stops with code
// 700, and one sentence names the address. Thread safety: as Operation.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "softgpu/driver/operation.h"
#include "softgpu/exec/fault.h"

namespace softgpu {

// Says that `what` (a copy of 8 bytes from ... to ...) found no memory at `address`. Returns the
// fault's code.
CUresult ReportAccess(const std::string& what, uint64_t address, CUstream stream);

// `access()` is called when the stream reaches it; REQUIRES what exec::FindPageFault does.
// `describe()` makes the words of a fault.
template <class Access, class Describe>
class AccessOperation final : public Operation {
 public:
  AccessOperation(Access access, Describe describe)
      : access_(std::move(access)), describe_(std::move(describe)) {}

  void SetStream(CUstream stream) override { stream_ = stream; }

  CUresult Run() override {
    const std::optional<uint64_t> missing = exec::FindPageFault(access_);
    return missing ? ReportAccess(describe_(), *missing, stream_) : CUDA_SUCCESS;
  }

 private:
  Access access_;
  Describe describe_;
  CUstream stream_ = nullptr;
};

template <class Access, class Describe>
std::unique_ptr<Operation> MakeAccess(Access access, Describe describe) {
  return std::make_unique<AccessOperation<Access, Describe>>(std::move(access),
                                                             std::move(describe));
}

}  // namespace softgpu
