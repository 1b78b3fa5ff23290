// Launches: parameters packed by the function's layout, limits checked here, queued without an
// answer.
#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "shim/call_trace.h"
#include "shim/devices.h"
#include "shim/driver/launch_request.h"
#include "shim/driver/local.h"
#include "shim/function_lookup.h"
#include "shim/graphs/capture.h"
#include "shim/known_launches.h"
#include "shim/pipeline.h"
#include "shim/recording/recorder.h"
#include "shim/send.h"
#include "shim/streams.h"
#include "shim/sync.h"

namespace local {
namespace {

using shim::Context;
using shim::Function;
using shim::KnownLaunches;
using shim::State;
using shim::Stream;
using shim::Streams;

// The device's limits. The first launch in a context fetches them; threads that race fetch the
// same.
CUresult InfoOf(Context* context, const ipc::DeviceInfo** info) {
  *info = context->info.load(std::memory_order_acquire);
  if (*info != nullptr) return CUDA_SUCCESS;
  const CUresult result = shim::Devices::Process().Info(context->device, info);
  if (result == CUDA_SUCCESS) context->info.store(*info, std::memory_order_release);
  return result;
}

// Refuses a launch that the driver refuses at once. The failure of a queued launch would show only
// at a later wait.
CUresult CheckLimits(const LaunchRequest& launch, const Function& function,
                     const ipc::DeviceInfo& device) {
  uint64_t threads = 1;
  for (int i = 0; i < 3; ++i) {
    const uint32_t grid_max =
        static_cast<uint32_t>(device.attributes[CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X + i]);
    const uint32_t block_max =
        static_cast<uint32_t>(device.attributes[CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X + i]);
    if (launch.grid[i] == 0 || launch.block[i] == 0) return CUDA_ERROR_INVALID_VALUE;
    if (launch.grid[i] > grid_max || launch.block[i] > block_max) return CUDA_ERROR_INVALID_VALUE;
    threads *= launch.block[i];
  }
  const int32_t* const attribute = function.info.attributes;
  if (threads > static_cast<uint64_t>(attribute[CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK])) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (launch.shared_bytes >
      static_cast<uint32_t>(attribute[CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES])) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

// The launch as a value that outlives the call, for a node of a graph.
void Pack(const LaunchRequest& launch, uint64_t function, uint64_t context,
          const ParamBlock& params, shim::graphs::Work* work) {
  shim::graphs::KernelWork kernel;
  kernel.function = function;
  kernel.context = reinterpret_cast<CUcontext>(context);
  std::copy(std::begin(launch.grid), std::end(launch.grid), kernel.grid);
  std::copy(std::begin(launch.block), std::end(launch.block), kernel.block);
  kernel.shared_bytes = launch.shared_bytes;
  for (unsigned i = 0; i < launch.attribute_count; ++i) {
    if (launch.attributes[i].id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE) kernel.cooperative = true;
  }
  const std::byte* const bytes = static_cast<const std::byte*>(params.data());
  kernel.params.assign(bytes, bytes + params.bytes());
  *work = std::move(kernel);
}

// --- sending -------------------------------------------------------------------------------------

// Most parameters are pointers or plain numbers.
void CopyParam(const void* from, size_t bytes, std::byte* to) {
  if (bytes == 8) {
    std::memcpy(to, from, 8);
  } else if (bytes == 4) {
    std::memcpy(to, from, 4);
  } else {
    std::memcpy(to, from, bytes);
  }
}

// Bytes between the parameters are zeroed: the block goes to another process, and nothing else of
// this one's memory may go there. REQUIRES: no pointer is null.
void Gather(void* const* params, const Function& function, std::byte* block) {
  if (!function.params_are_dense) std::memset(block, 0, function.info.param_bytes);
  for (const ipc::ParamLayout& param : function.params)
    CopyParam(*params++, param.bytes, block + param.offset);
}

bool HasAll(void* const* params, const Function& function) {
  if (function.info.param_bytes == 0) return true;
  if (params == nullptr) return false;
  for (size_t i = 0; i < function.params.size(); ++i) {
    if (params[i] == nullptr) return false;
  }
  return true;
}

// Calls that are traced or recorded are told with all their arguments, and launches that are
// captured are not sent.
bool MayBeKnown(const LaunchRequest& launch) {
  return launch.attribute_count == 0 && launch.extra == nullptr && !shim::IsTraced() &&
         !shim::graphs::AnyCapture() && shim::recording::Recorder::Process() == nullptr;
}

struct KnownRequest {
  void* const* params;
  const KnownLaunches::Launch& known;
};

// Writes the end of the message, in the order of the ring.
void WriteParams(void* argument, std::span<std::byte> block) {
  const auto& [params, known] = *static_cast<const KnownRequest*>(argument);
  shim::Streams::Process().TouchAny(*known.stream);
  if (!block.empty()) Gather(params, *known.function, block.data());
}

// The checks of the first launch hold as long as the launch is known. The parameters' pointers are
// the program's own each time, and so is a join that became due.
CUresult SubmitKnown(void* const* params, const KnownLaunches::Launch& known) {
  if (!HasAll(params, *known.function)) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult joined = Streams::JoinBefore(*known.stream); joined != CUDA_SUCCESS)
    return joined;
  KnownRequest request{params, known};
  const auto sent = static_cast<CUresult>(
      shim::PostKnown(ipc::Op::Launch, known.stream->wire, known.message, &WriteParams, &request));
  return sent == CUDA_SUCCESS ? shim::Throttle(*known.stream) : sent;
}

// `learned`: where the launch will be known; null: nowhere.
CUresult SendLaunch(const LaunchRequest& launch, uint64_t function, const Stream& stream,
                    const ParamBlock& params, KnownLaunches::Launch* learned) {
  const ipc::Arguments<ipc::Op::Launch> arguments(
      reinterpret_cast<CUfunction>(function), launch.grid[0], launch.grid[1], launch.grid[2],
      launch.block[0], launch.block[1], launch.block[2], launch.shared_bytes,
      reinterpret_cast<CUstream>(stream.value), launch.attributes, launch.attribute_count,
      params.data(), params.bytes());
  shim::Outgoing call(ipc::Op::Launch, stream.wire, arguments.values());
  if (learned != nullptr) call.learned = &learned->message;
  const auto sent = static_cast<CUresult>(shim::PostOutgoing(&call));
  return sent == CUDA_SUCCESS ? shim::Throttle(stream) : sent;
}

// Sends a launch, or adds it to the stream's capture. Returns without an answer from the worker.
CUresult Submit(const LaunchRequest& launch) {
  State& state = State::Process();
  Context* context = nullptr;
  uint64_t context_value = 0;
  if (const CUresult result = state.Current(&context, &context_value); result != CUDA_SUCCESS)
    return result;
  KnownLaunches& launches = shim::ThisThread().launches;
  const KnownLaunches::Caller caller{context_value, shim::PerThreadDefault::Active()};
  const uint64_t epoch = shim::KnownLaunchesEpoch();
  const bool may_be_known = MayBeKnown(launch);
  if (may_be_known) [[likely]] {
    const KnownLaunches::Launch* const known = launches.Find(launch, caller);
    if (known != nullptr) return SubmitKnown(launch.params, *known);
  }
  Stream* stream = nullptr;
  if (const CUresult result =
          Streams::Process().Use(launch.stream, *context, context_value, &stream);
      result != CUDA_SUCCESS) {
    return result;
  }
  Function* function = nullptr;
  uint64_t value = 0;
  if (const CUresult result = CheckLaunch(launch, context, &function, &value);
      result != CUDA_SUCCESS) {
    return result;
  }
  ParamBlock params;
  if (const CUresult result = params.Fill(launch, *function); result != CUDA_SUCCESS) return result;
  if (shim::graphs::AnyCapture()) [[unlikely]] {
    shim::graphs::Work work;
    Pack(launch, value, context_value, params, &work);
    if (const auto captured = shim::graphs::CaptureWork(*stream, std::move(work))) return *captured;
  }
  KnownLaunches::Launch* learned = nullptr;
  if (may_be_known) {
    learned = launches.Take(launch, caller, epoch, params.block());
    learned->function = function;
    learned->stream = stream;
  }
  return SendLaunch(launch, value, *stream, params, learned);
}

// Attributes that change what a launch does travel; hints about how are dropped; the rest is
// refused.
CUresult AddAttribute(const CUlaunchAttribute& attribute, LaunchRequest* launch) {
  switch (attribute.id) {
    case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
      if (attribute.value.cooperative != 0) launch->Add(attribute.id, 1);
      return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
      launch->Add(attribute.id, attribute.value.clusterDim.x, attribute.value.clusterDim.y,
                  attribute.value.clusterDim.z);
      return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
      launch->Add(attribute.id, static_cast<unsigned>(attribute.value.priority));
      return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_IGNORE:
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
    case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
    case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_NOT_SUPPORTED;
  }
}

// A request with the launch's dimensions; the callers fill the rest.
LaunchRequest Shaped(CUfunction function, const unsigned (&grid)[3], const unsigned (&block)[3]) {
  LaunchRequest launch;
  launch.function = function;
  std::copy(std::begin(grid), std::end(grid), launch.grid);
  std::copy(std::begin(block), std::end(block), launch.block);
  return launch;
}

}  // namespace

CUresult ParamBlock::Fill(const LaunchRequest& launch, const Function& function) {
  if (launch.params != nullptr && launch.extra != nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (launch.extra != nullptr) return FromExtra(launch.extra, function.info.param_bytes);
  bytes_ = function.info.param_bytes;
  if (bytes_ == 0) return CUDA_SUCCESS;
  if (!HasAll(launch.params, function)) return CUDA_ERROR_INVALID_VALUE;
  std::byte* const block = Room();
  Gather(launch.params, function, block);
  data_ = block;
  return CUDA_SUCCESS;
}

// `extra` is a list of key and value pairs; only these two keys exist. The block may be longer than
// the function's parameters, never shorter.
CUresult ParamBlock::FromExtra(void** extra, unsigned wanted) {
  size_t bytes = 0;
  for (; *extra != CU_LAUNCH_PARAM_END; extra += 2) {
    if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER) {
      data_ = extra[1];
    } else if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE) {
      bytes = *static_cast<size_t*>(extra[1]);
    } else {
      return CUDA_ERROR_INVALID_VALUE;
    }
  }
  if (bytes < wanted || bytes > ipc::limits::kKernelParamBytesMax) return CUDA_ERROR_INVALID_VALUE;
  if (bytes != 0 && data_ == nullptr) return CUDA_ERROR_INVALID_VALUE;
  bytes_ = static_cast<unsigned>(bytes);
  return CUDA_SUCCESS;
}

std::byte* ParamBlock::Room() {
  if (bytes_ <= sizeof on_stack_) return on_stack_;
  on_heap_ = std::make_unique_for_overwrite<std::byte[]>(bytes_);
  return on_heap_.get();
}

CUresult CheckLaunch(const LaunchRequest& launch, Context* context, Function** function,
                     uint64_t* value) {
  if (const CUresult result = shim::FindFunction(launch.function, function, value);
      result != CUDA_SUCCESS) {
    return result;
  }
  const ipc::DeviceInfo* info = nullptr;
  if (const CUresult result = InfoOf(context, &info); result != CUDA_SUCCESS) return result;
  return CheckLimits(launch, **function, *info);
}

CUresult WorkOf(const LaunchRequest& launch, shim::graphs::Work* work) {
  Context* context = nullptr;
  uint64_t context_value = 0;
  if (const CUresult result = State::Process().Current(&context, &context_value);
      result != CUDA_SUCCESS) {
    return result;
  }
  Function* function = nullptr;
  uint64_t value = 0;
  if (const CUresult result = CheckLaunch(launch, context, &function, &value);
      result != CUDA_SUCCESS) {
    return result;
  }
  ParamBlock params;
  if (const CUresult result = params.Fill(launch, *function); result != CUDA_SUCCESS) return result;
  Pack(launch, value, context_value, params, work);
  return CUDA_SUCCESS;
}

CUresult WorkOf(const CUDA_KERNEL_NODE_PARAMS_v2& params, shim::graphs::Work* work) {
  LaunchRequest launch =
      Shaped(params.func != nullptr ? params.func : reinterpret_cast<CUfunction>(params.kern),
             {params.gridDimX, params.gridDimY, params.gridDimZ},
             {params.blockDimX, params.blockDimY, params.blockDimZ});
  launch.shared_bytes = params.sharedMemBytes;
  launch.params = params.kernelParams;
  launch.extra = params.extra;
  return WorkOf(launch, work);
}

CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                        unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                        CUstream stream, void** params, void** extra) {
  LaunchRequest launch = Shaped(function, {grid_x, grid_y, grid_z}, {block_x, block_y, block_z});
  launch.shared_bytes = shared_bytes;
  launch.stream = stream;
  launch.params = params;
  launch.extra = extra;
  return Submit(launch);
}

CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned grid_x, unsigned grid_y,
                                   unsigned grid_z, unsigned block_x, unsigned block_y,
                                   unsigned block_z, unsigned shared_bytes, CUstream stream,
                                   void** params) {
  LaunchRequest launch = Shaped(function, {grid_x, grid_y, grid_z}, {block_x, block_y, block_z});
  launch.shared_bytes = shared_bytes;
  launch.stream = stream;
  launch.params = params;
  launch.Add(CU_LAUNCH_ATTRIBUTE_COOPERATIVE, 1);
  return Submit(launch);
}

CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** params,
                          void** extra) {
  if (config == nullptr || (config->numAttrs != 0 && config->attrs == nullptr))
    return CUDA_ERROR_INVALID_VALUE;
  if (config->numAttrs > kLaunchAttributesMax) return CUDA_ERROR_INVALID_VALUE;
  LaunchRequest launch = Shaped(function, {config->gridDimX, config->gridDimY, config->gridDimZ},
                                {config->blockDimX, config->blockDimY, config->blockDimZ});
  launch.shared_bytes = config->sharedMemBytes;
  launch.stream = config->hStream;
  launch.params = params;
  launch.extra = extra;
  for (unsigned i = 0; i < config->numAttrs; ++i) {
    if (const CUresult result = AddAttribute(config->attrs[i], &launch); result != CUDA_SUCCESS)
      return result;
  }
  return Submit(launch);
}

}  // namespace local
