#include "daemon/worker/call_handlers/call_door.h"

#include "daemon/worker/graph_piece.h"
#include "ipc/calls/blas_operands.h"
#include "ipc/codec.h"

namespace worker {

CallDoor::CallDoor(Holdings* held, CallContext* call, HandleMap* handles, const Kinds& kinds)
    : held_(*held),
      call_(*call),
      handles_(*handles),
      kinds_(kinds),
      scratch_(std::make_unique<std::byte[]>(ipc::kBodyBytesMax)) {}

// --- names ---------------------------------------------------------------------------------------

bool CallDoor::TranslateStream(ipc::HandleId id, void** driver_handle) {
  if (call_.capture != nullptr) {
    *driver_handle = call_.capture->capture();
    return true;
  }
  const ipc::HandleKind kind = ipc::HandleKind::kStream;
  call_.stream = id == ipc::HandleId::kLegacyStream
                     ? held_.streams.Legacy(call_.device)
                     : held_.streams.OfDriver(static_cast<CUstream>(handles_.Find(kind, id)));
  if (call_.stream == nullptr) return false;
  held_.streams.Use(call_.stream);
  *driver_handle = call_.stream->driver;
  return true;
}

bool CallDoor::Translate(ipc::HandleKind kind, ipc::HandleId id, void** driver_handle) {
  if (kind == ipc::HandleKind::kStream) return TranslateStream(id, driver_handle);
  void* const handle = handles_.Find(kind, id);
  if (handle == nullptr) return false;
  if (kind == ipc::HandleKind::kEvent) call_.event = id;
  if (kind == ipc::HandleKind::kFunction) call_.function = static_cast<CUfunction>(handle);
  if (kind == ipc::HandleKind::kBlas) {
    call_.blas = static_cast<cublasHandle_t>(handle);
    kinds_.blas->OnUse(call_.blas);
  }
  *driver_handle = handle;
  return true;
}

bool CallDoor::MayName(ipc::HandleKind kind, ipc::HandleId id) {
  return handles_.MayName(kind, id);
}

void CallDoor::Bind(ipc::HandleKind kind, ipc::HandleId id, void* driver_handle) {
  handles_.Bind(kind, id, driver_handle);
  if (kind == ipc::HandleKind::kEvent)
    kinds_.streams->OnBindEvent(id, static_cast<CUevent>(driver_handle));
  if (kind == ipc::HandleKind::kBlas)
    kinds_.blas->OnBind(static_cast<cublasHandle_t>(driver_handle));
}

void CallDoor::Release(ipc::HandleKind kind, ipc::HandleId id) {
  void* const handle = handles_.Find(kind, id);
  if (kind == ipc::HandleKind::kEvent)
    kinds_.streams->OnReleaseEvent(id, static_cast<CUevent>(handle));
  if (kind == ipc::HandleKind::kBlas) kinds_.blas->OnRelease(static_cast<cublasHandle_t>(handle));
  handles_.Release(kind, id);
}

bool CallDoor::UsePointerMode(ipc::HandleKind kind, void* driver_handle, bool device) {
  return kinds_.blas->UsePointerMode(kind, driver_handle, device);
}

// --- addresses -----------------------------------------------------------------------------------

bool CallDoor::Accepts(uint64_t address, uint64_t bytes) {
  if (call_.serves_work) return held_.addresses.Backs(address, bytes);
  // The memory may be on the host now, or in another session's turn: the call that touches it later
  // asks then.
  if (!held_.addresses.Owns(address, bytes)) return false;
  call_.named.push_back({address, bytes});
  return true;
}

// Without the layout, or of an order in tiles, no more is known than where the matrix begins.
bool CallDoor::AcceptsMatrix(uint64_t address, void* layout) {
  if (layout == nullptr || held_.environment.cublaslt == nullptr) return Accepts(address, 1);
  const auto get = [&](cublasLtMatrixLayoutAttribute_t attribute, auto* value) {
    held_.environment.cublaslt->cublasLtMatrixLayoutGetAttribute(
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

}  // namespace worker
