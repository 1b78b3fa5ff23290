#include "tests/worker/recording_driver.h"

#include "absl/strings/str_cat.h"
#include "ipc/driver_table.h"

namespace worker {
namespace {

Recording recording;

std::string Name(char letter, void* handle) {
  return absl::StrCat(std::string(1, letter), reinterpret_cast<uintptr_t>(handle));
}

template <class T>
T NewHandle() {
  return reinterpret_cast<T>(static_cast<uintptr_t>(recording.next_handle++));
}

CUresult StreamCreate(CUstream* stream, unsigned, int) {
  *stream = NewHandle<CUstream>();
  return CUDA_SUCCESS;
}
CUresult EventCreate(CUevent* event, unsigned) {
  *event = NewHandle<CUevent>();
  return CUDA_SUCCESS;
}
CUresult EventRecord(CUevent event, CUstream stream) {
  recording.calls.push_back(absl::StrCat("record ", Name('e', event), " ", Name('s', stream)));
  return CUDA_SUCCESS;
}
CUresult StreamWaitEvent(CUstream stream, CUevent event, unsigned) {
  recording.calls.push_back(absl::StrCat("wait ", Name('s', stream), " ", Name('e', event)));
  return CUDA_SUCCESS;
}
CUresult EventQuery(CUevent event) {
  return recording.unfinished_events.count(event) != 0 ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}
CUresult StreamQuery(CUstream stream) {
  return recording.busy_streams.count(stream) != 0 ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}
CUresult AddressReserve(CUdeviceptr* address, size_t, size_t, CUdeviceptr hint,
                        unsigned long long) {
  *address = hint;
  return CUDA_SUCCESS;
}
CUresult Map(CUdeviceptr address, size_t, size_t, CUmemGenericAllocationHandle,
             unsigned long long) {
  return recording.mapped.insert(address).second ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
CUresult Unmap(CUdeviceptr address, size_t) {
  return recording.mapped.erase(address) == 1 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

class Extents : public ExtentSource {
 public:
  CUresult Create(uint64_t, int, uint64_t bytes, Extent* extent) override {
    if (bytes > recording.capacity_bytes - recording.used_bytes) return CUDA_ERROR_OUT_OF_MEMORY;
    recording.used_bytes += bytes;
    *extent = {static_cast<uint64_t>(recording.next_handle++), bytes, 1};
    return CUDA_SUCCESS;
  }
  void Free(const Extent& extent) override { recording.used_bytes -= extent.bytes; }
  CUresult MemoryInfo(int, uint64_t* free_bytes, uint64_t* total_bytes) override {
    *total_bytes = recording.capacity_bytes;
    *free_bytes = recording.capacity_bytes - recording.used_bytes;
    return CUDA_SUCCESS;
  }
};

}  // namespace

Recording& FreshRecording() {
  recording = Recording();
  return recording;
}

Environment RecordingEnvironment() {
  static ipc::DriverTable table = ipc::NullDriver();
  static Extents extents;
  table.cuStreamCreateWithPriority = &StreamCreate;
  table.cuEventCreate = &EventCreate;
  table.cuEventRecord = &EventRecord;
  table.cuStreamWaitEvent = &StreamWaitEvent;
  table.cuEventQuery = &EventQuery;
  table.cuStreamQuery = &StreamQuery;
  table.cuMemAddressReserve = &AddressReserve;
  table.cuMemMap = &Map;
  table.cuMemUnmap = &Unmap;
  Environment environment;
  environment.driver = &table;
  environment.extents = &extents;
  return environment;
}

}  // namespace worker
