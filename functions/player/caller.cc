#include "functions/player/caller.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "functions/body_layout.h"
#include "ipc/calls/limits.h"
#include "ipc/dispatch.h"
#include "ipc/message.h"

namespace functions {
namespace {

using ipc::Op;
using ipc::Slot;

constexpr unsigned kJitOptionsMax = 32;
constexpr unsigned kLaunchAttributesMax = 16;

template <class T>
void Set(Slot* slot, const T& value) {
  std::memcpy(slot->bytes, &value, sizeof value);
}

// Where an attribute of a library's descriptor is an address, it moves into `moved`.
void MoveAttribute(const Relocation& relocation, Slot* slot, uint64_t* moved) {
  const void* const value = slot->As<const void*>();
  if (value == nullptr) return;
  std::memcpy(moved, value, sizeof *moved);
  *moved = relocation.Moved(*moved);
  Set(slot, static_cast<const void*>(moved));
}

}  // namespace

Caller::Caller(const Ground& ground)
    : ground_(ground),
      driver_(*ground.targets->driver),
      scratch_(std::make_unique<std::byte[]>(ipc::kBodyBytesMax)) {}

absl::Status Caller::MakeUntrusted(const Call& call, uint32_t step) {
  const std::optional<Op> op = ipc::OpFromUntrusted(call.op);
  if (!op.has_value() || !ipc::RowOf(*op).remote)
    return absl::InvalidArgumentError("the file is damaged; record it again");
  op_ = *op;
  step_ = step;
  std::vector<std::byte> room(ipc::kBodyBytesMax);
  ipc::Writer reply(room);
  const ipc::Served served =
      ipc::ServeUntrusted(op_, call.body, &Caller::Invoke, this, *this, &reply);
  if (served.outcome == ipc::Outcome::kMalformed)
    return absl::InvalidArgumentError("the file is damaged; record it again");
  if (served.status != 0) {
    return absl::FailedPreconditionError(
        absl::StrCat(std::string(ipc::RowOf(op_).name), " of the recorded program fails with code ",
                     served.status, " here; record it again on this machine"));
  }
  return absl::OkStatus();
}

// --- calls ---------------------------------------------------------------------------------------

uint32_t Caller::Invoke(void* target, const Slot* slots) {
  Caller& caller = *static_cast<Caller*>(target);
  return ipc::LibraryOf(caller.op_) == ipc::Library::kLaneway
             ? static_cast<uint32_t>(caller.Own(slots))
             : caller.Vendors(slots);
}

// The decoded arguments are the recorded program's addresses; the copy that the vendor's function
// gets has this process's.
uint32_t Caller::Vendors(const Slot* slots) {
  void* const function = ipc::FunctionAt(*ground_.targets, op_);
  const ipc::Invoker invoke = ipc::InvokerOf(op_);
  if (function == nullptr || invoke == nullptr)
    return ipc::StatusOf(ipc::LibraryOf(op_), ipc::Refusal::kNotSupported);
  const std::span<const ipc::Param> params = ipc::RowOf(op_).params;
  std::array<Slot, ipc::kParamsMax> moved;
  std::array<uint64_t, ipc::kParamsMax> attributes;
  std::copy_n(slots, params.size(), moved.begin());
  for (size_t i = 0; i < params.size(); ++i) {
    const ipc::RoleKind role = params[i].role.kind;
    // A scalar is an address of the device, or of the room that the codec has put the value into.
    if (role == ipc::RoleKind::kDevicePtr || role == ipc::RoleKind::kResult ||
        role == ipc::RoleKind::kScalar)
      Set(&moved[i], ground_.relocation->Moved(moved[i].As<uint64_t>()));
    if (role != ipc::RoleKind::kLtAttribute) continue;
    const std::array<uint16_t, 4>& named = params[i].role.length;  // its size, and which it is
    if (moved[named[0]].As<size_t>() == sizeof(uint64_t) &&
        ipc::IsAddress(moved[named[1]].As<cublasLtMatmulDescAttributes_t>()))
      MoveAttribute(*ground_.relocation, &moved[i], &attributes[i]);
  }
  return invoke(function, moved.data());
}

CUresult Caller::Own(const Slot* slots) {
  switch (op_) {
    case Op::LoadModule:
      return LoadModule(slots);
    case Op::GetFunction:
      return GetFunction(slots);
    case Op::GetGlobal:
      return GetGlobal(slots);
    case Op::Launch:
      return Launch(slots);
    case Op::CopyDevice:
      return CopyDevice(slots);
    case Op::GraphBegin:
      return GraphBegin(slots);
    case Op::GraphKernel: {
      Kernel kernel = KernelOf(slots, 3, 11);
      if (slots[10].As<unsigned>() != 0) {
        CUlaunchAttribute cooperative{};
        cooperative.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
        cooperative.value.cooperative = 1;
        kernel.attributes.push_back(cooperative);
      }
      return GraphNode(slots, std::move(kernel));
    }
    case Op::GraphSetKernel:
      return GraphNode(slots, KernelOf(slots, 3, 10));
    case Op::GraphFill: {
      const unsigned element = slots[5].As<unsigned>();
      if (element != 1 && element != 2 && element != 4) return CUDA_ERROR_INVALID_VALUE;
      return GraphNode(slots, Fill{ground_.relocation->Moved(slots[2].As<uint64_t>()),
                                   slots[3].As<size_t>(), slots[4].As<unsigned>(), element,
                                   slots[6].As<size_t>(), slots[7].As<size_t>()});
    }
    case Op::GraphCopy:
      return GraphNode(
          slots, RowCopy{ground_.relocation->Moved(slots[2].As<uint64_t>()), slots[3].As<size_t>(),
                         ground_.relocation->Moved(slots[4].As<uint64_t>()), slots[5].As<size_t>(),
                         slots[6].As<size_t>(), slots[7].As<size_t>()});
    case Op::GraphEmpty:
      return GraphNode(slots, std::monostate());
    case Op::GraphEdges:  // nodes come in an order that their edges allow
    case Op::GraphSeal:
      return CUDA_SUCCESS;
    case Op::GraphLaunch:
      return GraphLaunch(slots);
    default:
      return CUDA_ERROR_NOT_SUPPORTED;
  }
}

CUresult Caller::LoadModule(const Slot* slots) {
  const ipc::ModuleHash& hash = *slots[1].As<const ipc::ModuleHash*>();
  const std::vector<Image>::const_iterator image =
      std::find_if(ground_.images->begin(), ground_.images->end(), [&hash](const Image& one) {
        return std::memcmp(one.hash.data(), hash.word, sizeof hash.word) == 0;
      });
  const unsigned count = slots[4].As<unsigned>();
  if (image == ground_.images->end() || count > kJitOptionsMax) return CUDA_ERROR_INVALID_IMAGE;
  // A text ends with a zero, which may not be a part of what was recorded.
  Bytes bytes = image->bytes;
  bytes.push_back(std::byte{0});
  // Options change how a module is compiled, not what it computes: the driver's own serve.
  return driver_.cuModuleLoadDataEx(slots[0].As<CUmodule*>(), bytes.data(), 0, nullptr, nullptr);
}

CUresult Caller::GetFunction(const Slot* slots) {
  return driver_.cuModuleGetFunction(slots[0].As<CUfunction*>(), slots[1].As<CUmodule>(),
                                     slots[2].As<const char*>());
}

CUresult Caller::GetGlobal(const Slot* slots) {
  return driver_.cuModuleGetGlobal_v2(&variable_, &variable_bytes_, slots[2].As<CUmodule>(),
                                      slots[3].As<const char*>());
}

Bytes Caller::Parameters(const void* packed, size_t bytes) const {
  const std::byte* const from = static_cast<const std::byte*>(packed);
  Bytes parameters(from, from + (packed == nullptr ? 0 : bytes));
  ground_.relocation->Move(parameters);
  return parameters;
}

// Not cuLaunchKernel at once: the emitter remembers the node, so that scalars can change it.
CUresult Caller::Launch(const Slot* slots) {
  Kernel kernel;
  kernel.function = slots[0].As<CUfunction>();
  for (size_t i = 0; i < 3; ++i) {
    kernel.grid[i] = slots[1 + i].As<unsigned>();
    kernel.block[i] = slots[4 + i].As<unsigned>();
  }
  kernel.shared_bytes = slots[7].As<unsigned>();
  const unsigned attributes = slots[10].As<unsigned>();
  if (attributes > kLaunchAttributesMax) return CUDA_ERROR_INVALID_VALUE;
  for (unsigned i = 0; i < attributes; ++i) {
    const ipc::LaunchAttribute& sent = slots[9].As<const ipc::LaunchAttribute*>()[i];
    if (!ipc::IsLaunchAttribute(sent.id)) return CUDA_ERROR_NOT_SUPPORTED;
    CUlaunchAttribute attribute{};
    attribute.id = static_cast<CUlaunchAttributeID>(sent.id);
    std::memcpy(&attribute.value, sent.value, sizeof sent.value);
    kernel.attributes.push_back(attribute);
  }
  kernel.parameters = Parameters(slots[11].As<const void*>(), slots[12].As<unsigned>());
  kernel.step = step_;
  return ground_.emitter->Add(kernel);
}

CUresult Caller::CopyDevice(const Slot* slots) {
  return driver_.cuMemcpyDtoDAsync_v2(ground_.relocation->Moved(slots[0].As<uint64_t>()),
                                      ground_.relocation->Moved(slots[1].As<uint64_t>()),
                                      slots[2].As<size_t>(), ground_.stream);
}

// --- graphs --------------------------------------------------------------------------------------

// A piece is kept as its nodes and put into the function's graph where it is launched: one graph
// for all of an iteration, whatever graphs the program had.
CUresult Caller::GraphBegin(const Slot* slots) {
  pieces_.push_back(std::make_unique<Piece>());
  *slots[0].As<void**>() = pieces_.back().get();
  return CUDA_SUCCESS;
}

Kernel Caller::KernelOf(const Slot* slots, size_t grid, size_t parameters) const {
  Kernel kernel;
  kernel.function = slots[2].As<CUfunction>();
  for (size_t i = 0; i < 3; ++i) {
    kernel.grid[i] = slots[grid + i].As<unsigned>();
    kernel.block[i] = slots[grid + 3 + i].As<unsigned>();
  }
  kernel.shared_bytes = slots[grid + 6].As<unsigned>();
  kernel.parameters =
      Parameters(slots[parameters].As<const void*>(), slots[parameters + 1].As<unsigned>());
  kernel.step = step_;
  return kernel;
}

// A node is defined once, or a kernel's anew.
CUresult Caller::GraphNode(const Slot* slots, Work work) {
  Piece& piece = *slots[0].As<Piece*>();
  const unsigned number = slots[1].As<unsigned>();
  if (number >= ipc::limits::kGraphNodesMax) return CUDA_ERROR_INVALID_VALUE;
  if (number >= piece.size()) piece.resize(number + 1);
  Kernel* const before = std::get_if<Kernel>(&piece[number]);
  Kernel* const now = std::get_if<Kernel>(&work);
  if (before != nullptr && now != nullptr) now->attributes = before->attributes;
  piece[number] = std::move(work);
  return CUDA_SUCCESS;
}

CUresult Caller::GraphLaunch(const Slot* slots) {
  CUresult result = CUDA_SUCCESS;
  for (const Work& work : *slots[0].As<const Piece*>()) {
    if (result != CUDA_SUCCESS) return result;
    if (const Kernel* const kernel = std::get_if<Kernel>(&work))
      result = ground_.emitter->Add(*kernel);
    if (const Fill* const fill = std::get_if<Fill>(&work)) result = ground_.emitter->Add(*fill);
    if (const RowCopy* const copy = std::get_if<RowCopy>(&work))
      result = ground_.emitter->Add(*copy);
  }
  return result;
}

// --- ipc::Session --------------------------------------------------------------------------------

bool Caller::Translate(ipc::HandleKind kind, ipc::HandleId id, void** driver_handle) {
  if (kind == ipc::HandleKind::kStream) {
    *driver_handle = ground_.stream;
    return true;
  }
  const auto found = handles_.find({kind, id});
  if (found == handles_.end()) return false;
  *driver_handle = found->second;
  return true;
}

bool Caller::MayName(ipc::HandleKind kind, ipc::HandleId id) {
  return id >= ipc::HandleId::kFirst && static_cast<uint32_t>(id) < ipc::NamesEnd(kind) &&
         handles_.count({kind, id}) == 0;
}

void Caller::Bind(ipc::HandleKind kind, ipc::HandleId id, void* driver_handle) {
  handles_[{kind, id}] = driver_handle;
  if (kind == ipc::HandleKind::kBlas && ground_.targets->cublas->cublasSetStream_v2 != nullptr) {
    (void)ground_.targets->cublas->cublasSetStream_v2(static_cast<cublasHandle_t>(driver_handle),
                                                      ground_.stream);
  }
}

void Caller::Release(ipc::HandleKind kind, ipc::HandleId id) { handles_.erase({kind, id}); }

bool Caller::Accepts(uint64_t address, uint64_t bytes) {
  return ground_.relocation->Holds(address, bytes);
}

// The layout tells more, but the library itself touches no memory here: the device will, in memory
// that is the function's.
bool Caller::AcceptsMatrix(uint64_t address, void* layout) { return Accepts(address, 1); }

bool Caller::UsePointerMode(ipc::HandleKind kind, void* driver_handle, bool device) {
  const std::map<void*, bool>::iterator known = on_device_.find(driver_handle);
  if ((known == on_device_.end() ? false : known->second) == device) return true;
  on_device_[driver_handle] = device;
  if (kind == ipc::HandleKind::kBlas) {
    return ground_.targets->cublas->cublasSetPointerMode_v2(
               static_cast<cublasHandle_t>(driver_handle),
               device ? CUBLAS_POINTER_MODE_DEVICE : CUBLAS_POINTER_MODE_HOST) ==
           CUBLAS_STATUS_SUCCESS;
  }
  const cublasLtPointerMode_t mode =
      device ? CUBLASLT_POINTER_MODE_DEVICE : CUBLASLT_POINTER_MODE_HOST;
  return ground_.targets->cublaslt->cublasLtMatmulDescSetAttribute(
             static_cast<cublasLtMatmulDesc_t>(driver_handle), CUBLASLT_MATMUL_DESC_POINTER_MODE,
             &mode, sizeof mode) == CUBLAS_STATUS_SUCCESS;
}

std::span<std::byte> Caller::Scratch() { return {scratch_.get(), ipc::kBodyBytesMax}; }

}  // namespace functions
