// The door for addresses: what a call may name, what of it must be there, and what follows when it
// is not.
#include "absl/strings/str_cat.h"
#include "daemon/worker/graph_piece.h"
#include "daemon/worker/session_impl.h"
#include "ipc/calls/blas_operands.h"
#include "ipc/codec.h"

namespace worker {

bool SessionImpl::Accepts(uint64_t address, uint64_t bytes) {
  if (serves_work_) return addresses_.Backs(address, bytes);
  // It may be on the host now, or another's turn: what touches it later asks then.
  if (!addresses_.Owns(address, bytes)) return false;
  named_.push_back({address, bytes});
  return true;
}

// Without the layout, or of an order in tiles, no more is known than where the matrix begins.
bool SessionImpl::AcceptsMatrix(uint64_t address, void* layout) {
  if (layout == nullptr || environment_.cublaslt == nullptr) return Accepts(address, 1);
  const auto get = [&](cublasLtMatrixLayoutAttribute_t attribute, auto* value) {
    environment_.cublaslt->cublasLtMatrixLayoutGetAttribute(
        static_cast<cublasLtMatrixLayout_t>(layout), attribute, value, sizeof *value, nullptr);
  };
  uint32_t type = 0, mode = 0;
  int32_t order = -1, batch = 0;
  uint64_t rows = 0, columns = 0;
  int64_t ld = 0, stride = 0;
  get(CUBLASLT_MATRIX_LAYOUT_TYPE, &type);
  get(CUBLASLT_MATRIX_LAYOUT_ORDER, &order);
  get(CUBLASLT_MATRIX_LAYOUT_ROWS, &rows);
  get(CUBLASLT_MATRIX_LAYOUT_COLS, &columns);
  get(CUBLASLT_MATRIX_LAYOUT_LD, &ld);
  get(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch);
  get(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride);
  get(CUBLASLT_MATRIX_LAYOUT_BATCH_MODE, &mode);
  const bool row_order = order == CUBLASLT_ORDER_ROW;
  const int64_t bytes = static_cast<int64_t>(ipc::BytesOfDataType(static_cast<cudaDataType>(type)));
  if (bytes == 0 || (!row_order && order != CUBLASLT_ORDER_COL)) return Accepts(address, 1);
  const int64_t along = static_cast<int64_t>(row_order ? columns : rows);
  const int64_t across = static_cast<int64_t>(row_order ? rows : columns);
  const ipc::blas::Region region =
      mode == CUBLASLT_BATCH_MODE_POINTER_ARRAY
          ? ipc::blas::MatrixRegion(batch, 1, batch, sizeof(void*))
          : ipc::blas::MatrixRegion(along, across, ld, bytes, batch, stride);
  return ipc::blas::Reaches(region, address,
                            [this](uint64_t from, uint64_t size) { return Accepts(from, size); });
}

// The driver's own calls say so with a status. A library would have faulted.
void SessionImpl::AfterBadAddress(ipc::Op op) {
  const ipc::Library library = ipc::LibraryOf(op);
  const bool computes = library == ipc::Library::kCublas || library == ipc::Library::kCublasLt;
  if (!computes || !serves_work_) return;
  LoseForAddress(absl::StrCat(
      "laneway: ", std::string(ipc::RowOf(op).name),
      " would reach memory that this program has not allocated; look at its sizes, leading "
      "dimensions and strides. The session ends, as after an illegal address"));
}

void SessionImpl::LoseForAddress(const std::string& sentence) {
  Lose(sentence.c_str(), CUDA_ERROR_ILLEGAL_ADDRESS);
}

void SessionImpl::NoteTouched(CUgraphExec piece) {
  if (piece == nullptr) return;
  for (const AddressSpan& span : named_) GraphPiece::Of(piece)->touched().Add(span);
}

}  // namespace worker
