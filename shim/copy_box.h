// Copies of boxes: rows of rows, from and to the structures of cuMemcpy2D and cuMemcpy3D.
// Thread safety: any thread.
#pragma once

#include "ipc/calls/vendor.h"

#include <cstddef>

#include "ipc/calls/copy_params.h"
#include "shim/copy.h"

namespace shim {

// `depth` slices of rows.
struct CopyBox {
  PitchedCopy rows;  // of the first slice
  size_t to_slice = 0;
  size_t from_slice = 0;
  size_t depth = 1;

  bool empty() const { return rows.width == 0 || rows.height == 0 || depth == 0; }
};

// Rows are a box of one slice.
inline CUDA_MEMCPY3D AsBox(const CUDA_MEMCPY2D& params) { return ipc::OneSlice(params); }
inline const CUDA_MEMCPY3D& AsBox(const CUDA_MEMCPY3D& params) { return params; }
inline CUDA_MEMCPY3D AsBox(const CUDA_MEMCPY3D_PEER& params) {
  return ipc::WithoutContexts(params);
}

// 801: arrays (array_copy.h). 1: what the program calls a device address is none.
CUresult BoxOf(const CUDA_MEMCPY3D& params, CopyBox* box);

// What a graph's node is checked for when it is made: that memory of the session is live.
CUresult CheckBox(const CopyBox& box);

// What a graph's node is checked for, whatever it copies.
CUresult CheckCopy(const CUDA_MEMCPY3D& params);

CUresult CopyBoxes(const CopyBox& box, const Stream& stream);

}  // namespace shim
