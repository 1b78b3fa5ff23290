#include "functions/player/player.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "functions/body_layout.h"

namespace functions {
namespace {

// A function without calls of cuBLAS needs no cuBLAS.
const ipc::Targets* NewTargets(const ipc::DriverTable* driver) {
  ipc::CublasTable* const cublas = new ipc::CublasTable;
  ipc::CublasLtTable* const cublaslt = new ipc::CublasLtTable;
  (void)ipc::LoadCublas("libcublas.so.13", cublas);
  (void)ipc::LoadCublasLt("libcublasLt.so.13", cublaslt);
  ipc::Targets* const targets = new ipc::Targets;
  targets->driver = driver;
  targets->cublas = cublas;
  targets->cublaslt = cublaslt;
  return targets;
}

}  // namespace

absl::StatusOr<const ipc::Targets*> Player::LoadLibraries() {
  ipc::DriverTable* const driver = new ipc::DriverTable;
  if (const absl::Status loaded = ipc::LoadDriver("libcuda.so.1", driver); !loaded.ok())
    return loaded;
  return NewTargets(driver);
}

absl::StatusOr<std::unique_ptr<Player>> Player::Open(const Function* function,
                                                     const ipc::Targets* targets) {
  std::unique_ptr<Player> player(new Player(function, targets));
  for (absl::Status (Player::*const step)() :
       {&Player::Start, &Player::Allocate, &Player::SetUp, &Player::FillMemory, &Player::Stage,
        &Player::Capture}) {
    if (const absl::Status done = (player.get()->*step)(); !done.ok()) return done;
  }
  return player;
}

absl::Status Player::Check(CUresult result, const char* what) const {
  if (result == CUDA_SUCCESS) return absl::OkStatus();
  const char* text = nullptr;
  if (driver_.cuGetErrorString == nullptr ||
      driver_.cuGetErrorString(result, &text) != CUDA_SUCCESS)
    text = "unknown error";
  return absl::InternalError(
      absl::StrCat("cannot ", what, ": ", text, " (code ", static_cast<int>(result), ")"));
}

absl::Status Player::Start() {
  CUdevice device = 0;
  CUcontext context = nullptr;
  CUresult result = driver_.cuInit(0);
  if (result == CUDA_SUCCESS) result = driver_.cuDeviceGet(&device, 0);
  if (result == CUDA_SUCCESS) result = driver_.cuDevicePrimaryCtxRetain(&context, device);
  if (result == CUDA_SUCCESS) result = driver_.cuCtxSetCurrent(context);
  if (result == CUDA_SUCCESS) result = driver_.cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING);
  if (result != CUDA_SUCCESS) return Check(result, "use the device");
  emitter_ = std::make_unique<Emitter>(&driver_, stream_);
  caller_ = std::make_unique<Caller>(
      Caller::Ground{&targets_, &function_.images, &relocation_, stream_, emitter_.get()});
  return absl::OkStatus();
}

absl::Status Player::Allocate() {
  uint64_t end = 0;
  for (const Block& block : function_.blocks) {
    CUdeviceptr address = 0;
    if (block.variable == 0) {
      // Blocks ascend and are disjoint in a file that Laneway wrote.
      if (block.bytes == 0 || block.base < end)
        return absl::InvalidArgumentError("the file is damaged; record it again");
      end = block.base + block.bytes;
      const CUresult result = driver_.cuMemAlloc_v2(&address, block.bytes);
      if (result != CUDA_SUCCESS) return Check(result, "allocate the function's memory");
      relocation_.Add(block.base, block.bytes, address);
    }
    memory_.push_back(address);
  }
  return absl::OkStatus();
}

absl::Status Player::SetUp() {
  for (size_t i = 0; i < function_.setup.size(); ++i) {
    const absl::Status made = caller_->MakeUntrusted(function_.setup[i], 0);
    if (!made.ok()) return made;
    for (size_t k = 0; k < function_.blocks.size(); ++k) {
      const Block& block = function_.blocks[k];
      if (block.variable != i + 1) continue;
      memory_[k] = caller_->variable();
      if (memory_[k] == 0 || caller_->variable_bytes() != block.bytes ||
          relocation_.Holds(block.base, 1) || relocation_.Holds(block.base + block.bytes - 1, 1))
        return absl::InvalidArgumentError("the file is damaged; record it again");
      relocation_.Add(block.base, block.bytes, memory_[k]);
    }
  }
  return absl::OkStatus();
}

absl::Status Player::FillMemory() {
  CUresult result = CUDA_SUCCESS;
  for (size_t i = 0; i < memory_.size() && result == CUDA_SUCCESS; ++i) {
    Bytes content = function_.blocks[i].content;
    if (content.empty()) {
      result = driver_.cuMemsetD8_v2(memory_[i], 0, function_.blocks[i].bytes);
      continue;
    }
    relocation_.Move(content);
    result = driver_.cuMemcpyHtoD_v2(memory_[i], content.data(), content.size());
  }
  if (result == CUDA_SUCCESS) result = driver_.cuCtxSynchronize();
  return Check(result, "fill the function's memory");
}

absl::Status Player::Stage() {
  for (const bool in : {true, false}) {
    for (const Port& port : in ? function_.inputs : function_.outputs) {
      if (port.bytes == 0 || !relocation_.Holds(port.address, port.bytes))
        return absl::InvalidArgumentError("the file is damaged; record it again");
      void* bytes = nullptr;
      const CUresult result = driver_.cuMemHostAlloc(&bytes, port.bytes, 0);
      if (result != CUDA_SUCCESS) return Check(result, "allocate pinned memory");
      (in ? inputs_ : outputs_).push_back({static_cast<std::byte*>(bytes)});
    }
  }
  return absl::OkStatus();
}

absl::Status Player::Emit(uint32_t number, const Step& step) {
  if (step.kind == StepKind::kCall) return caller_->MakeUntrusted(step.call, number);
  const bool in = step.kind == StepKind::kUpload;
  const Port& port = in ? function_.inputs[step.port] : function_.outputs[step.port];
  std::byte* const host = in ? inputs_[step.port].bytes : outputs_[step.port].bytes;
  const CUdeviceptr device = relocation_.Moved(port.address);
  return Check(in ? driver_.cuMemcpyHtoDAsync_v2(device, host, port.bytes, stream_)
                  : driver_.cuMemcpyDtoHAsync_v2(host, device, port.bytes, stream_),
               "record the function's copies");
}

absl::Status Player::Capture() {
  absl::Status status =
      Check(driver_.cuStreamBeginCapture_v2(stream_, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
            "begin a graph");
  for (uint32_t i = 0; i < function_.steps.size() && status.ok(); ++i)
    status = Emit(i, function_.steps[i]);
  if (!status.ok()) return status;
  CUgraph graph = nullptr;
  CUresult result = driver_.cuStreamEndCapture(stream_, &graph);
  if (result == CUDA_SUCCESS) result = driver_.cuGraphInstantiateWithFlags(&executable_, graph, 0);
  return Check(result, "make a graph of the function");
}

// The recorded call's body holds the parameters as they were; the kernel's have this process's
// addresses.
absl::Status Player::SetScalar(const Scalar& scalar, std::span<const std::byte> value) {
  const Call& call = function_.steps[scalar.step].call;
  const std::optional<ipc::Op> op = ipc::OpFromUntrusted(call.op);
  Emitter::Node* const node = emitter_->NodeOf(scalar.step);
  const std::optional<Part> part =
      op.has_value() && CarriesKernel(*op) ? KernelParametersOf(*op, call.body) : std::nullopt;
  if (node == nullptr || !part.has_value() || scalar.offset < part->offset ||
      node->kernel.parameters.size() != part->bytes)
    return absl::InvalidArgumentError("the file is damaged; record it again");
  std::byte* const place = node->kernel.parameters.data() + (scalar.offset - part->offset);
  if (std::equal(value.begin(), value.end(), place)) return absl::OkStatus();
  std::copy(value.begin(), value.end(), place);
  return Check(emitter_->Update(executable_, node), "set a scalar input");
}

absl::Status Player::Run(std::span<const std::span<const std::byte>> inputs,
                         std::vector<Bytes>* outputs) {
  for (size_t i = 0; i < inputs_.size(); ++i)
    std::copy(inputs[i].begin(), inputs[i].end(), inputs_[i].bytes);
  for (size_t i = 0; i < function_.scalars.size(); ++i) {
    const absl::Status set = SetScalar(function_.scalars[i], inputs[inputs_.size() + i]);
    if (!set.ok()) return set;
  }
  CUresult result = driver_.cuGraphLaunch(executable_, stream_);
  if (result == CUDA_SUCCESS) result = driver_.cuStreamSynchronize(stream_);
  if (result != CUDA_SUCCESS) return Check(result, "run the function");
  outputs->resize(outputs_.size());
  for (size_t i = 0; i < outputs_.size(); ++i)
    (*outputs)[i].assign(outputs_[i].bytes, outputs_[i].bytes + function_.outputs[i].bytes);
  return absl::OkStatus();
}

}  // namespace functions
