// The steps of a launch that are ordinary calls.
#include "shim/array_copy.h"
#include "shim/copy_box.h"
#include "shim/driver/local.h"
#include "shim/graphs/pieces.h"
#include "shim/host_functions.h"
#include "shim/send.h"
#include "shim/sync.h"

namespace shim::graphs {
namespace {

// Stream 0 may mean the thread's own stream just now; the step's stream is found already.
CUstream ProgramStream(const Stream& stream) {
  return stream.legacy ? CU_STREAM_LEGACY : reinterpret_cast<CUstream>(stream.value);
}

CUresult RunOne(const KernelWork& work, const Stream& stream) {
  ipc::LaunchAttribute cooperative = {};
  cooperative.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
  cooperative.value[0] = 1;
  return Post<ipc::Op::Launch>(stream.wire, reinterpret_cast<CUfunction>(work.function),
                               work.grid[0], work.grid[1], work.grid[2], work.block[0],
                               work.block[1], work.block[2], work.shared_bytes,
                               ProgramStream(stream), &cooperative, work.cooperative ? 1u : 0u,
                               work.params.data(), static_cast<unsigned>(work.params.size()));
}

// The program's pageable memory is read when the device is there, so the launch waits for it.
CUresult RunOne(const MemcpyWork& work, const Stream& stream) {
  if (HasArray(work.params)) {
    const CUresult read = FromPageable(work.params) ? SynchronizeStream(stream) : CUDA_SUCCESS;
    return read == CUDA_SUCCESS ? CopyWithArray(work.params, false, stream) : read;
  }
  CopyBox box;
  if (const CUresult result = BoxOf(work.params, &box); result != CUDA_SUCCESS) return result;
  if (box.empty()) return CUDA_SUCCESS;
  box.rows.synchronous = false;
  if (Memory::PlaceOf(box.rows.from) == Memory::Place::kHost) {
    if (const CUresult result = SynchronizeStream(stream); result != CUDA_SUCCESS) return result;
  }
  return CopyBoxes(box, stream);
}

template <ipc::Op line, ipc::Op rows, class Value>
CUresult Fill(const CUDA_MEMSET_NODE_PARAMS_v1& fill, const Stream& stream) {
  const Value value = static_cast<Value>(fill.value);
  if (fill.height == 1)
    return Post<line>(stream.wire, fill.dst, value, fill.width, ProgramStream(stream));
  return Post<rows>(stream.wire, fill.dst, fill.pitch, value, fill.width, fill.height,
                    ProgramStream(stream));
}

CUresult RunOne(const MemsetWork& work, const Stream& stream) {
  using ipc::Op;
  const CUDA_MEMSET_NODE_PARAMS_v1& fill = work.params;
  if (fill.width == 0 || fill.height == 0) return CUDA_SUCCESS;
  if (fill.elementSize == 4)
    return Fill<Op::cuMemsetD32Async, Op::cuMemsetD2D32Async, unsigned>(fill, stream);
  if (fill.elementSize == 2)
    return Fill<Op::cuMemsetD16Async, Op::cuMemsetD2D16Async, unsigned short>(fill, stream);
  return Fill<Op::cuMemsetD8Async, Op::cuMemsetD2D8Async, unsigned char>(fill, stream);
}

CUresult RunOne(const HostWork& work, const Stream& stream) {
  return HostFunctions::Process().Launch(stream, work.function, work.data);
}
CUresult RunOne(const EmptyWork&, const Stream&) { return CUDA_SUCCESS; }
CUresult RunOne(const ChildWork&, const Stream&) { return CUDA_SUCCESS; }     // flattened
CUresult RunOne(const LibraryWork&, const Stream&) { return CUDA_SUCCESS; }   // in a piece
CUresult RunOne(const AllocateWork&, const Stream&) { return CUDA_SUCCESS; }  // Executable::Launch
CUresult RunOne(const FreeWork&, const Stream&) { return CUDA_SUCCESS; }      // likewise
CUresult RunOne(const ConditionalWork&, const Stream&) { return CUDA_SUCCESS; }  // in a piece
CUresult RunOne(const EventWaitWork& work, const Stream& stream) {
  return Post<ipc::Op::cuStreamWaitEvent>(stream.wire, ProgramStream(stream), work.event, 0u);
}
CUresult RunOne(const EventRecordWork& work, const Stream& stream) {
  return local::cuEventRecord(work.event, ProgramStream(stream));
}
CUresult RunOne(const MemoryWork& work, const Stream& stream) {
  using ipc::Op;
  const CUstream program = ProgramStream(stream);
  for (const CUstreamBatchMemOpParams& item : work.items) {
    const auto& wait = item.waitValue;
    const auto& write = item.writeValue;
    CUresult result = CUDA_ERROR_NOT_SUPPORTED;
    switch (item.operation) {
      case CU_STREAM_MEM_OP_WAIT_VALUE_32:
        result = Post<Op::cuStreamWaitValue32_v2>(stream.wire, program, wait.address, wait.value,
                                                  wait.flags);
        break;
      case CU_STREAM_MEM_OP_WAIT_VALUE_64:
        result = Post<Op::cuStreamWaitValue64_v2>(stream.wire, program, wait.address, wait.value64,
                                                  wait.flags);
        break;
      case CU_STREAM_MEM_OP_WRITE_VALUE_32:
        result = Post<Op::cuStreamWriteValue32_v2>(stream.wire, program, write.address, write.value,
                                                   write.flags);
        break;
      case CU_STREAM_MEM_OP_WRITE_VALUE_64:
        result = Post<Op::cuStreamWriteValue64_v2>(stream.wire, program, write.address,
                                                   write.value64, write.flags);
        break;
      default:
        break;
    }
    if (result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}

}  // namespace

CUresult Run(const Work& work, const Stream& stream) {
  return std::visit([&](const auto& one) { return RunOne(one, stream); }, work);
}

}  // namespace shim::graphs
