// Copies between one row of an array and something else.
#include "ipc/calls/copy_params.h"
#include "shim/driver/copies.h"
#include "shim/driver/local.h"

namespace local {
namespace {

using ipc::OfArray;
using ipc::OfDevice;
using ipc::OfHost;

CUresult CopyRow(const ipc::RowEnd& to, const ipc::RowEnd& from, size_t bytes, CUstream stream,
                 bool synchronous) {
  return CopyOneBox(ipc::RowCopy(to, from, bytes), stream, synchronous);
}

}  // namespace

CUresult cuMemcpyDtoA_v2(CUarray to, size_t x, CUdeviceptr from, size_t bytes) {
  return CopyRow(OfArray(to, x), OfDevice(from), bytes, nullptr, true);
}
CUresult cuMemcpyAtoD_v2(CUdeviceptr to, CUarray from, size_t x, size_t bytes) {
  return CopyRow(OfDevice(to), OfArray(from, x), bytes, nullptr, true);
}
CUresult cuMemcpyHtoA_v2(CUarray to, size_t x, const void* from, size_t bytes) {
  return CopyRow(OfArray(to, x), OfHost(from), bytes, nullptr, true);
}
CUresult cuMemcpyAtoH_v2(void* to, CUarray from, size_t x, size_t bytes) {
  return CopyRow(OfHost(to), OfArray(from, x), bytes, nullptr, true);
}
CUresult cuMemcpyAtoA_v2(CUarray to, size_t to_x, CUarray from, size_t from_x, size_t bytes) {
  return CopyRow(OfArray(to, to_x), OfArray(from, from_x), bytes, nullptr, true);
}
CUresult cuMemcpyHtoAAsync_v2(CUarray to, size_t x, const void* from, size_t bytes,
                              CUstream stream) {
  return CopyRow(OfArray(to, x), OfHost(from), bytes, stream, false);
}
CUresult cuMemcpyAtoHAsync_v2(void* to, CUarray from, size_t x, size_t bytes, CUstream stream) {
  return CopyRow(OfHost(to), OfArray(from, x), bytes, stream, false);
}

}  // namespace local
