#include "shim/handle_resolver.h"

#include "shim/client.h"
#include "shim/results.h"
#include "shim/send.h"
#include "shim/streams.h"

namespace shim {
namespace {

thread_local uint64_t given_name = 0;

size_t Index(ipc::HandleKind kind) { return static_cast<size_t>(kind); }

uint64_t Bits(const void* value) { return reinterpret_cast<uint64_t>(value); }

}  // namespace

GivenName::GivenName(uint64_t value) { given_name = value; }
GivenName::~GivenName() { given_name = 0; }

BlasState& BlasState::Process() {
  static BlasState* const state = new BlasState;
  return *state;
}

HandleResolver& HandleResolver::Process() {
  static HandleResolver* const caller = new HandleResolver;
  return *caller;
}

HandleResolver::HandleResolver() {
  State& state = State::Process();
  BlasState& blas = BlasState::Process();
  names_[Index(ipc::HandleKind::kContext)] = &state.contexts;
  names_[Index(ipc::HandleKind::kStream)] = &Streams::Process().table;
  names_[Index(ipc::HandleKind::kEvent)] = &state.events;
  names_[Index(ipc::HandleKind::kModule)] = &state.modules;
  names_[Index(ipc::HandleKind::kFunction)] = &state.functions;
  names_[Index(ipc::HandleKind::kArray)] = &state.arrays;
  names_[Index(ipc::HandleKind::kMipmappedArray)] = &state.mipmaps;
  names_[Index(ipc::HandleKind::kGraphExec)] = &state.graph_pieces;
  names_[Index(ipc::HandleKind::kBlas)] = &blas.handles;
  names_[Index(ipc::HandleKind::kBlasLt)] = &blas.lt_handles;
  names_[Index(ipc::HandleKind::kLtMatmulDesc)] = &blas.matmul_descs;
  names_[Index(ipc::HandleKind::kLtMatrixLayout)] = &blas.layouts;
  names_[Index(ipc::HandleKind::kLtPreference)] = &blas.preferences;
  names_[Index(ipc::HandleKind::kLtTransformDesc)] = &blas.transform_descs;
  names_[Index(ipc::HandleKind::kLtEmulationDesc)] = &blas.emulation_descs;
}

bool HandleResolver::Find(ipc::HandleKind kind, const void* value, ipc::HandleId* id) {
  const Names* const names = names_[Index(kind)];
  if (names == nullptr || !names->Has(Bits(value))) return false;
  *id = NameOf(Bits(value));
  if (kind == ipc::HandleKind::kBlas) {
    const BlasHandle* const handle = BlasState::Process().handles.Find(Bits(value));
    ipc::HandleId stream = ipc::HandleId::kNull;
    if (handle != nullptr)
      FindStream(handle->stream, false, &stream);  // one more call on its stream
  }
  return true;
}

bool HandleResolver::FindStream(const void* value, bool per_thread, ipc::HandleId* id) {
  const CUstream program = static_cast<CUstream>(const_cast<void*>(value));
  if (value == nullptr && per_thread) return FindStream(CU_STREAM_PER_THREAD, false, id);
  if (value == nullptr || program == CU_STREAM_LEGACY) {
    *id = ipc::HandleId::kLegacyStream;
    Client::Process().pipeline().Touch(Pipeline::kLegacyStream);
    return true;
  }
  Streams& streams = Streams::Process();
  Stream* stream = nullptr;
  if (program == CU_STREAM_PER_THREAD) {
    stream = streams.KnownPerThread();
  } else {
    stream = streams.table.Find(Bits(value));
  }
  if (stream == nullptr) return false;
  streams.Touch(*stream);
  *id = NameOf(stream->value);
  return true;
}

bool HandleResolver::Name(ipc::HandleKind kind, ipc::HandleId* id, void** value) {
  uint64_t made = given_name;
  given_name = 0;
  if (made == 0) {
    Names* const names = names_[Index(kind)];
    if (names == nullptr || !names->Add(&made)) return false;
  }
  *id = NameOf(made);
  *value = reinterpret_cast<void*>(made);
  return true;
}

void HandleResolver::Forget(ipc::HandleKind kind, ipc::HandleId id) {
  if (Names* const names = names_[Index(kind)]; names != nullptr) names->Forget(id);
}

bool HandleResolver::Accepts(uint64_t address, uint64_t bytes) {
  const uint64_t base = Client::Process().arena_base();
  const uint64_t offset = address - base;
  if (address >= base && offset < ipc::limits::kSlotBytes)
    return bytes <= ipc::limits::kSlotBytes - offset;
  const Allocations& variables = State::Process().variables;
  Allocation found;
  return !variables.empty() && variables.Find(address, &found) &&
         bytes <= found.bytes - (address - found.base);
}

bool HandleResolver::ScalarsOnDevice(ipc::HandleKind kind, ipc::HandleId id) {
  BlasState& blas = BlasState::Process();
  if (kind == ipc::HandleKind::kBlas) {
    const BlasHandle* const handle = blas.handles.Find(blas.handles.ValueOf(id));
    return handle != nullptr && handle->pointer_mode == CUBLAS_POINTER_MODE_DEVICE;
  }
  if (kind != ipc::HandleKind::kLtMatmulDesc) return false;
  const LtMatmulDesc* const desc = blas.matmul_descs.Find(blas.matmul_descs.ValueOf(id));
  return desc != nullptr && desc->pointer_mode != CUBLASLT_POINTER_MODE_HOST;
}

size_t HandleResolver::ScalarBytes(ipc::HandleId matmul_desc) {
  BlasState& blas = BlasState::Process();
  const LtMatmulDesc* const desc = blas.matmul_descs.Find(blas.matmul_descs.ValueOf(matmul_desc));
  return desc == nullptr ? 0 : ipc::BytesOfDataType(desc->scale);
}

bool HandleResolver::ResultSlot(ipc::HandleId, void* host, size_t bytes, uint64_t* address) {
  return HostResults::OfThisThread().Take(host, bytes, address);
}

}  // namespace shim
