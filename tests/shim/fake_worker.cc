#include "tests/shim/fake_worker.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cassert>
#include <cstring>

#include "ipc/dispatch.h"
#include "ipc/futex.h"
#include "shim/client.h"
#include "shim/connection.h"

namespace shim_test {
namespace {

constexpr uint32_t kSlot = 5;
constexpr size_t kShadowBytes = size_t{1} << 30;
constexpr int64_t kNapUs = 20'000;

void* LegacyHandle() { return reinterpret_cast<void*>(0x1); }

}  // namespace

FakeWorker& FakeWorker::Start(uint32_t worker_pid, const ipc::Tables& tables, uint32_t devices) {
  static FakeWorker* worker = nullptr;
  if (worker != nullptr) return *worker;
  worker = new FakeWorker;
  absl::StatusOr<int> fd = ipc::SessionFile::Create(77, kSlot);
  assert(fd.ok());
  absl::StatusOr<ipc::SessionFile> file = ipc::SessionFile::Map(*fd);
  assert(file.ok());
  worker->file_ = std::make_unique<ipc::SessionFile>(std::move(*file));
  worker->channel_ = worker->file_->WorkerChannel();
  worker->driver_ = ipc::NullDriver();
  worker->scratch_ = std::make_unique<std::byte[]>(ipc::kBodyBytesMax);
  worker->arena_base_ = ipc::limits::kSlotBase + kSlot * ipc::limits::kSlotBytes;
  worker->shadow_ =
      static_cast<std::byte*>(mmap(nullptr, ipc::limits::kDeviceArenaBytes, PROT_READ | PROT_WRITE,
                                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  const int pinned = memfd_create("pinned", MFD_CLOEXEC);
  [[maybe_unused]] const int sized =
      ftruncate(pinned, static_cast<off_t>(ipc::limits::kPinnedWindowBytes));
  assert(sized == 0);

  ipc::Welcome welcome;
  welcome.session_id = 77;
  welcome.slot = kSlot;
  welcome.device_count = devices;
  welcome.worker_pid = worker_pid;
  welcome.tables = tables;
  shim::ConnectError error;
  std::unique_ptr<shim::Connection> connection = shim::Adopt(welcome, *fd, pinned, &error);
  assert(connection != nullptr);
  close(*fd);
  close(pinned);
  shim::Client::Process().Use(std::move(connection));
  worker->thread_ = std::thread([] { worker->Serve(); });
  return *worker;
}

void FakeWorker::Stop() {
  stop_.store(true);
  thread_.join();
}

void FakeWorker::Release() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    held_.store(false);
    for (const std::pair<uint32_t, uint64_t>& mark : kept_back_) {
      file_->completions()->completed[mark.first].store(mark.second, std::memory_order_release);
    }
    kept_back_.clear();
  }
  Ring();
}

void FakeWorker::Ring() {
  file_->page()->client_doorbell.fetch_add(1);
  ipc::FutexWakeAll(&file_->page()->client_doorbell);
}

std::vector<SeenLaunch> FakeWorker::launches() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return launches_;
}

std::map<std::string, int> FakeWorker::counts() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return counts_;
}

void FakeWorker::FailNext(const std::string& name, CUresult result) {
  const std::lock_guard<std::mutex> lock(mutex_);
  faults_[name] = result;
}

CUresult FakeWorker::Fault(const char* name) {
  const std::map<std::string, CUresult>::iterator it = faults_.find(name);
  if (it == faults_.end()) return CUDA_SUCCESS;
  const CUresult result = it->second;
  faults_.erase(it);
  return result;
}

void FakeWorker::Serve() {
  while (!stop_.load()) {
    const std::span<const std::byte> message =
        channel_.receiver->NextUntrusted(ipc::limits::kSpinUs, kNapUs);
    if (!message.empty()) ServeOne(message);
  }
}

void FakeWorker::ServeOne(std::span<const std::byte> message) {
  ipc::MessageHeader header;
  std::memcpy(&header, message.data(), sizeof header);
  std::vector<std::byte> bytes(ipc::limits::kMessageBytesMax);
  ipc::Writer reply({bytes.data() + sizeof header, ipc::kBodyBytesMax});
  ipc::Targets targets;
  targets.driver = &driver_;
  targets.cublas = &ipc::NullCublas();
  targets.cublaslt = &ipc::NullCublasLt();
  targets.laneway = this;
  ipc::Served served;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    call_device_ = (header.context & 0xff) - 1;
    const std::optional<ipc::Op> op = ipc::OpFromUntrusted(header.op);
    if (op.has_value()) ++counts_[std::string(ipc::RowOf(*op).name)];
    served =
        ipc::DispatchUntrusted(header.op, message.subspan(sizeof header), targets, *this, &reply);
  }
  assert(served.outcome == ipc::Outcome::kReplied);
  if ((header.flags & ipc::kWantsReply) == 0) {
    uint32_t none = 0;
    if (served.status != 0) file_->page()->async_error.compare_exchange_strong(none, served.status);
    return;
  }
  header.bytes = static_cast<uint32_t>(sizeof header + reply.size());
  header.flags = ipc::kIsReply;
  std::memcpy(bytes.data(), &header, sizeof header);
  const std::span<std::byte> room = channel_.sender->Reserve(header.bytes, 1'000'000);
  assert(!room.empty());
  std::memcpy(room.data(), bytes.data(), header.bytes);
  channel_.sender->Commit(header.bytes);
}

// --- the door ------------------------------------------------------------------------------------

bool FakeWorker::Translate(ipc::HandleKind kind, ipc::HandleId id, void** driver_handle) {
  if (kind == ipc::HandleKind::kStream && id == ipc::HandleId::kLegacyStream) {
    *driver_handle = LegacyHandle();
    return true;
  }
  const auto it = handles_.find({kind, id});
  if (it == handles_.end()) return false;
  *driver_handle = it->second;
  return true;
}
bool FakeWorker::MayName(ipc::HandleKind kind, ipc::HandleId id) {
  return ipc::IsClientName(id) && handles_.count({kind, id}) == 0;
}
void FakeWorker::Bind(ipc::HandleKind kind, ipc::HandleId id, void* driver_handle) {
  handles_[{kind, id}] =
      driver_handle != nullptr ? driver_handle : reinterpret_cast<void*>(next_handle_++);
}
void FakeWorker::Release(ipc::HandleKind kind, ipc::HandleId id) { handles_.erase({kind, id}); }
bool FakeWorker::Accepts(uint64_t address, uint64_t bytes) {
  return address >= arena_base_ && address - arena_base_ + bytes <= ipc::limits::kSlotBytes;
}

// --- marks ---------------------------------------------------------------------------------------

uint32_t FakeWorker::SlotOf(CUstream stream) {
  return stream == LegacyHandle() ? call_device_ : slots_.at(stream);
}

CUresult FakeWorker::Place(CUstream stream, const ipc::Mark& mark) {
  if (mark.sequence == 0) return CUDA_SUCCESS;
  const uint32_t slot = SlotOf(stream);
  if (held_.load()) {
    kept_back_.emplace_back(slot, mark.sequence);
    return CUDA_SUCCESS;
  }
  file_->completions()->completed[slot].store(mark.sequence, std::memory_order_release);
  if (mark.wake != 0) Ring();
  return CUDA_SUCCESS;
}

// --- calls ---------------------------------------------------------------------------------------

CUresult FakeWorker::Ping(uint64_t token, uint64_t* echo) {
  *echo = token;
  return CUDA_SUCCESS;
}
CUresult FakeWorker::GetDeviceInfo(CUdevice device, ipc::DeviceInfo* info) {
  std::snprintf(info->name, sizeof info->name, "fake %d", device);
  info->memory_bytes = kShadowBytes;
  for (int32_t& attribute : info->attributes) attribute = 1;
  info->attributes[CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK] = 1024;
  info->attributes[CU_DEVICE_ATTRIBUTE_WARP_SIZE] = 32;
  for (int i = 0; i < 3; ++i) {
    info->attributes[CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X + i] = 1024;
    info->attributes[CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X + i] = 65535;
  }
  return CUDA_SUCCESS;
}
CUresult FakeWorker::ContextReset(CUdevice) { return CUDA_SUCCESS; }

CUresult FakeWorker::ArenaMap(CUdeviceptr, size_t) { return Fault("ArenaMap"); }
CUresult FakeWorker::ArenaUnmap(CUdeviceptr) { return CUDA_SUCCESS; }
CUresult FakeWorker::LaneReserve(size_t) { return Fault("LaneReserve"); }
CUresult FakeWorker::LaneKeep(CUdeviceptr, size_t) { return Fault("LaneKeep"); }
CUresult FakeWorker::LaneDrop(CUdeviceptr) { return CUDA_SUCCESS; }
CUresult FakeWorker::StreamsJoin() { return CUDA_SUCCESS; }
CUresult FakeWorker::MemInfo(size_t* free, size_t* total) {
  *total = kShadowBytes;
  *free = kShadowBytes;
  return CUDA_SUCCESS;
}
CUresult FakeWorker::PinnedAlloc(CUdeviceptr, size_t, unsigned) { return Fault("PinnedAlloc"); }
CUresult FakeWorker::PinnedFree(CUdeviceptr) { return CUDA_SUCCESS; }

CUresult FakeWorker::HasModule(const ipc::ModuleHash* hash, int* known) {
  *known = *hash == image_hash_;
  return CUDA_SUCCESS;
}
CUresult FakeWorker::ModuleBytes(const ipc::ModuleHash* hash, uint64_t offset, uint64_t total,
                                 const void* bytes, size_t count) {
  image_hash_ = *hash;
  image_.resize(total);
  std::memcpy(image_.data() + offset, bytes, count);
  return CUDA_SUCCESS;
}
CUresult FakeWorker::LoadModule(CUmodule* module, const ipc::ModuleHash*, const CUjit_option*,
                                const uint64_t*, unsigned, char* info_log, unsigned info_bytes,
                                char* error_log, unsigned error_bytes) {
  if (info_bytes != 0) std::snprintf(info_log, info_bytes, "info");
  const CUresult fault = Fault("LoadModule");
  if (fault != CUDA_SUCCESS && error_bytes != 0)
    std::snprintf(error_log, error_bytes, "line 3: bad");
  *module = reinterpret_cast<CUmodule>(next_handle_++);
  return fault;
}
// The link of one image is that image.
CUresult FakeWorker::LinkImages(const ipc::LinkInput* inputs, unsigned count, const CUjit_option*,
                                const uint64_t*, unsigned, ipc::ModuleHash* linked,
                                uint64_t* linked_bytes, char*, unsigned, char* error_log,
                                unsigned error_bytes) {
  const CUresult fault = Fault("LinkImages");
  if (fault != CUDA_SUCCESS && error_bytes != 0 && count != 0)
    std::snprintf(error_log, error_bytes, "%s: bad", inputs[count - 1].name);
  *linked = inputs[0].hash;
  *linked_bytes = image_.size();
  return fault;
}
CUresult FakeWorker::ImageBytes(const ipc::ModuleHash*, uint64_t offset, void* bytes,
                                size_t count) {
  std::memcpy(bytes, image_.data() + offset, count);
  return CUDA_SUCCESS;
}
CUresult FakeWorker::UnloadModule(CUmodule module) {
  std::erase_if(handles_, [&](const auto& entry) {
    return entry.first.first == ipc::HandleKind::kFunction && modules_[entry.second] == module;
  });
  return CUDA_SUCCESS;
}

// Every name is a function with the parameters (u64, u32, u8[3] at 16).
CUresult FakeWorker::GetFunction(CUfunction* function, CUmodule module, const char* name,
                                 ipc::FunctionInfo* info, ipc::ParamLayout* params,
                                 unsigned params_max) {
  if (const CUresult fault = Fault("GetFunction"); fault != CUDA_SUCCESS) return fault;
  static constexpr ipc::ParamLayout kLayout[] = {{0, 8}, {8, 4}, {16, 3}};
  *function = reinterpret_cast<CUfunction>(next_handle_++);
  functions_[*function] = name;
  modules_[*function] = module;
  info->params = 3;
  info->param_bytes = 19;
  info->attributes[CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK] = 512;
  info->attributes[CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES] = 48 << 10;
  for (unsigned i = 0; i < 3 && i < params_max; ++i) params[i] = kLayout[i];
  return CUDA_SUCCESS;
}
CUresult FakeWorker::GetGlobal(CUdeviceptr* address, size_t* bytes, CUmodule, const char*) {
  *address = 0x3000'0000'0000;
  *bytes = 64;
  return CUDA_SUCCESS;
}
CUresult FakeWorker::FunctionNames(CUmodule, unsigned* count, char* names, unsigned bytes) {
  static constexpr char kNames[] = "first\0second";
  *count = 2;
  std::memcpy(names, kNames, std::min<size_t>(sizeof kNames, bytes));
  return CUDA_SUCCESS;
}

CUresult FakeWorker::Launch(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                            unsigned block_x, unsigned block_y, unsigned block_z,
                            unsigned shared_bytes, CUstream stream,
                            const ipc::LaunchAttribute* attributes, unsigned attribute_count,
                            const void* params, unsigned param_bytes) {
  SeenLaunch launch;
  launch.function = functions_[function];
  const unsigned grid[] = {grid_x, grid_y, grid_z}, block[] = {block_x, block_y, block_z};
  std::copy(grid, grid + 3, launch.grid);
  std::copy(block, block + 3, launch.block);
  launch.shared_bytes = shared_bytes;
  launch.stream = SlotOf(stream);
  if (attribute_count != 0) launch.attributes.assign(attributes, attributes + attribute_count);
  const auto* const bytes = static_cast<const std::byte*>(params);
  if (param_bytes != 0) launch.params.assign(bytes, bytes + param_bytes);
  launches_.push_back(std::move(launch));
  return CUDA_SUCCESS;
}

CUresult FakeWorker::StreamCreate(CUstream* stream, unsigned, int, unsigned slot) {
  *stream = reinterpret_cast<CUstream>(next_handle_++);
  slots_[*stream] = slot;
  return CUDA_SUCCESS;
}
CUresult FakeWorker::StreamDestroy(CUstream) { return CUDA_SUCCESS; }
CUresult FakeWorker::StreamMark(CUstream stream, ipc::Mark mark) { return Place(stream, mark); }
CUresult FakeWorker::EventRecord(CUevent, CUstream stream, ipc::Mark mark) {
  return Place(stream, mark);
}
CUresult FakeWorker::EventWake(CUevent) {
  Ring();
  return CUDA_SUCCESS;
}
CUresult FakeWorker::HostCall(CUstream stream, uint64_t, ipc::Mark mark) {
  return Place(stream, mark);
}
CUresult FakeWorker::Boundary(const ipc::BoundaryInfo*) { return CUDA_SUCCESS; }

}  // namespace shim_test
