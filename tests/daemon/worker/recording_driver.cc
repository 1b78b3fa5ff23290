#include "tests/daemon/worker/recording_driver.h"

#include <algorithm>
#include <cassert>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ipc/calls/limits.h"
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
  recording.reached_ms[event] = recording.device_ms;
  if (recording.asynchronous) recording.queued.push_back({[] {}, event});
  return CUDA_SUCCESS;
}
CUresult ElapsedTime(float* milliseconds, CUevent start, CUevent end) {
  if (recording.reached_ms.count(start) == 0 || recording.reached_ms.count(end) == 0)
    return CUDA_ERROR_INVALID_HANDLE;
  *milliseconds = static_cast<float>(recording.reached_ms[end] - recording.reached_ms[start]);
  return CUDA_SUCCESS;
}
CUresult StreamWaitEvent(CUstream stream, CUevent event, unsigned) {
  recording.calls.push_back(absl::StrCat("wait ", Name('s', stream), " ", Name('e', event)));
  return CUDA_SUCCESS;
}
CUresult EventQuery(CUevent event) {
  const bool finished = recording.unfinished_events.count(event) == 0 && recording.Finish(event);
  return finished ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}
CUresult StreamQuery(CUstream stream) {
  const bool finished = recording.busy_streams.count(stream) == 0 && recording.Finish(nullptr);
  return finished ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}
// The work before it is done: all that is recorded is.
CUresult AddCallback(CUstream stream, CUstreamCallback callback, void* data, unsigned) {
  callback(stream, CUDA_SUCCESS, data);
  return CUDA_SUCCESS;
}
CUresult AddressReserve(CUdeviceptr* address, size_t, size_t, CUdeviceptr hint,
                        unsigned long long) {
  *address = hint;
  return CUDA_SUCCESS;
}
CUresult Map(CUdeviceptr address, size_t bytes, size_t, CUmemGenericAllocationHandle handle,
             unsigned long long) {
  const std::map<CUdeviceptr, Recording::Mapping>::iterator next =
      recording.mappings.lower_bound(address + bytes);
  if (next != recording.mappings.begin()) {
    const std::map<CUdeviceptr, Recording::Mapping>::iterator before = std::prev(next);
    if (before->first + before->second.bytes > address) return CUDA_ERROR_INVALID_VALUE;
  }
  recording.mappings[address] = {handle, bytes, false};
  recording.mapped.insert(address);
  return CUDA_SUCCESS;
}
CUresult SetAccess(CUdeviceptr address, size_t, const CUmemAccessDesc*, size_t) {
  recording.mappings.at(address).open = true;
  return CUDA_SUCCESS;
}
CUresult Unmap(CUdeviceptr address, size_t bytes) {
  const std::map<CUdeviceptr, Recording::Mapping>::iterator found =
      recording.mappings.find(address);
  if (found == recording.mappings.end() || found->second.bytes != bytes) {
    return CUDA_ERROR_INVALID_VALUE;  // a mapping can't be unmapped in part
  }
  recording.mappings.erase(found);
  recording.mapped.erase(address);
  return CUDA_SUCCESS;
}
// Calls `use` with each contiguous piece of the memory behind the range, and its offset.
template <class Use>
void ForPieces(CUdeviceptr address, size_t bytes, const Use& use) {
  for (size_t done = 0; done < bytes;) {
    uint8_t* const first = &recording.At(address + done);
    const std::pair<const CUdeviceptr, Recording::Mapping>& mapping =
        *std::prev(recording.mappings.upper_bound(address + done));
    const size_t left = mapping.first + mapping.second.bytes - (address + done);
    use(first, done, std::min(left, bytes - done));
    done += std::min(left, bytes - done);
  }
}
CUresult Clear(CUdeviceptr address, unsigned char value, size_t bytes, CUstream) {
  recording.Submit([=] {
    ForPieces(address, bytes,
              [value](uint8_t* at, size_t, size_t n) { std::memset(at, value, n); });
  });
  recording.cleared_bytes += bytes;
  return CUDA_SUCCESS;
}
CUresult CopyOut(void* to, CUdeviceptr from, size_t bytes, CUstream) {
  recording.Submit([=] {
    ForPieces(from, bytes, [to](uint8_t* at, size_t offset, size_t n) {
      std::memcpy(static_cast<uint8_t*>(to) + offset, at, n);
    });
  });
  return CUDA_SUCCESS;
}
CUresult CopyIn(CUdeviceptr to, const void* from, size_t bytes, CUstream) {
  recording.Submit([=] {
    ForPieces(to, bytes, [from](uint8_t* at, size_t offset, size_t n) {
      std::memcpy(at, static_cast<const uint8_t*>(from) + offset, n);
    });
  });
  return CUDA_SUCCESS;
}
CUresult HostAlloc(void** address, size_t bytes, unsigned) {
  *address = std::malloc(bytes);
  return CUDA_SUCCESS;
}
CUresult FreeHost(void* address) {
  std::free(address);
  return CUDA_SUCCESS;
}

class Extents : public ExtentSource {
 public:
  CUresult Create(const ExtentRecord& wanted, Extent* extent) override {
    if (wanted.bytes > recording.capacity_bytes - recording.used_bytes) {
      return CUDA_ERROR_OUT_OF_MEMORY;
    }
    ExtentRecord record = wanted;
    record.id = static_cast<uint64_t>(recording.next_handle++);
    recording.AddExtent(record);
    recording.imports[record.id] = 1;
    *extent = {record.id, record.bytes, record.id, recording.clear};
    return CUDA_SUCCESS;
  }
  void Free(const Extent& extent) override {
    recording.given_up.insert(extent.id);
    Drop(extent);
  }
  void Drop(const Extent& extent) override {
    for (const std::pair<const CUdeviceptr, Recording::Mapping>& mapping : recording.mappings) {
      if (recording.imports[extent.id] > 1) break;  // another worker may have it mapped
      assert(mapping.second.handle != extent.handle && "still mapped");
    }
    assert(recording.imports[extent.id] > 0);
    if (--recording.imports[extent.id] != 0 || recording.given_up.count(extent.id) == 0) return;
    recording.extents.erase(extent.id);
    recording.contents.erase(extent.id);
    recording.used_bytes -= extent.bytes;
  }
  CUresult List(const Owner& owner, std::vector<ExtentRecord>* extents) override {
    extents->clear();
    for (const std::pair<const uint64_t, ExtentRecord>& entry : recording.extents) {
      const bool given_up = recording.given_up.count(entry.first) != 0;
      if (entry.second.owner == owner && !given_up) extents->push_back(entry.second);
    }
    std::sort(extents->begin(), extents->end(),
              [](const ExtentRecord& a, const ExtentRecord& b) { return a.address < b.address; });
    return CUDA_SUCCESS;
  }
  CUresult Import(const ExtentRecord& record, Extent* extent) override {
    if (recording.extents.count(record.id) == 0) return CUDA_ERROR_INVALID_VALUE;
    ++recording.imports[record.id];
    *extent = {record.id, record.bytes, record.id, false};
    return CUDA_SUCCESS;
  }
  void ChangeOwner(const Extent& extent, const Owner& owner, uint64_t address,
                   uint64_t range) override {
    ExtentRecord& record = recording.extents.at(extent.id);
    record.owner = owner;
    record.address = address;
    record.range = range;
  }
  std::shared_ptr<LaneClaim> ClaimOf(uint64_t lane) override { return recording.claims->Of(lane); }
  void Claim(uint64_t lane) override { recording.claimed.push_back(lane); }
  CUresult MemoryInfo(int, uint64_t* free_bytes, uint64_t* total_bytes) override {
    *total_bytes = recording.capacity_bytes;
    *free_bytes = recording.capacity_bytes - recording.used_bytes;
    return CUDA_SUCCESS;
  }
};

// The bodies are all one graph.
CUresult AddConditional(CUgraphNode*, CUgraph, const CUgraphNode*, const CUgraphEdgeData*, size_t,
                        CUgraphNodeParams* params) {
  static std::vector<CUgraph>* const bodies =
      new std::vector<CUgraph>(ipc::limits::kGraphBodiesMax, reinterpret_cast<CUgraph>(1));
  params->conditional.phGraph_out = bodies->data();
  return CUDA_SUCCESS;
}

}  // namespace

uint8_t& Recording::At(CUdeviceptr address) {
  const std::map<CUdeviceptr, Mapping>::iterator next = mappings.upper_bound(address);
  assert(next != mappings.begin());
  const std::pair<const CUdeviceptr, Mapping>& mapping = *std::prev(next);
  assert(address - mapping.first < mapping.second.bytes && mapping.second.open);
  std::vector<uint8_t>& bytes = contents[mapping.second.handle];
  bytes.resize(mapping.second.bytes);
  return bytes[address - mapping.first];
}

void Recording::Submit(std::function<void()> work) {
  if (asynchronous) {
    queued.push_back({std::move(work)});
  } else {
    work();
  }
}

bool Recording::Finish(CUevent event) {
  size_t end = queued.size();  // what is to be done ends here
  while (event != nullptr && end > 0 && queued[end - 1].reached != event) --end;
  if (end == 0) return true;
  if (!std::exchange(queued[end - 1].asked, true)) return false;
  const std::vector<Operation> done(queued.begin(), queued.begin() + static_cast<ptrdiff_t>(end));
  queued.erase(queued.begin(), queued.begin() + static_cast<ptrdiff_t>(end));
  for (const Operation& one : done) one.work();
  return true;
}

void Recording::AddExtent(const ExtentRecord& record) {
  extents[record.id] = record;
  used_bytes += record.bytes;
}

Recording& FreshRecording() {
  recording = Recording();
  return recording;
}

Environment RecordingEnvironment() {
  static ipc::DriverTable table = ipc::NullDriver();
  static Extents extents;
  table.cuGraphAddNode_v2 = &AddConditional;
  table.cuStreamCreateWithPriority = &StreamCreate;
  table.cuEventCreate = &EventCreate;
  table.cuEventRecord = &EventRecord;
  table.cuEventElapsedTime_v2 = &ElapsedTime;
  table.cuStreamWaitEvent = &StreamWaitEvent;
  table.cuEventQuery = &EventQuery;
  table.cuStreamQuery = &StreamQuery;
  table.cuStreamAddCallback = &AddCallback;
  table.cuMemAddressReserve = &AddressReserve;
  table.cuMemMap = &Map;
  table.cuMemUnmap = &Unmap;
  table.cuMemSetAccess = &SetAccess;
  table.cuMemsetD8Async = &Clear;
  table.cuMemcpyDtoHAsync_v2 = &CopyOut;
  table.cuMemcpyHtoDAsync_v2 = &CopyIn;
  table.cuMemHostAlloc = &HostAlloc;
  table.cuMemFreeHost = &FreeHost;
  Environment environment;
  environment.driver = &table;
  environment.extents = &extents;
  return environment;
}

}  // namespace worker
