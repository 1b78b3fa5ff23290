#include "tests/shim/fake_worker.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <thread>
#include <utility>

#include "ipc/calls/limits.h"
#include "shim/client.h"
#include "shim/connection.h"

namespace shim_test {
namespace {

constexpr uint64_t kSessionId = 77;

// A real worker maps pinned memory at the addresses at which the client has it, in a process of its
// own. Here the client's mapping serves both. So the linker puts the functions below in the place
// of mmap and munmap (--wrap), and on the worker's thread they leave these addresses alone.
thread_local bool is_worker_thread = false;

bool IsClientsMapping(const void* address) {
  constexpr uint64_t kWindow = ipc::limits::kSlotBase +
                               FakeMemory::kSlot * ipc::limits::kSlotBytes +
                               ipc::limits::kDeviceArenaBytes;
  return is_worker_thread &&
         reinterpret_cast<uint64_t>(address) - kWindow < ipc::limits::kPinnedWindowBytes;
}

[[noreturn]] void Fail(const char* sentence) {
  std::fprintf(stderr, "fake worker: %s\n", sentence);
  std::abort();
}

}  // namespace

extern "C" {
void* __real_mmap(void* address, size_t bytes, int protection, int flags, int fd, off_t offset);
int __real_munmap(void* address, size_t bytes);

void* __wrap_mmap(void* address, size_t bytes, int protection, int flags, int fd, off_t offset) {
  if (IsClientsMapping(address)) return address;
  return __real_mmap(address, bytes, protection, flags, fd, offset);
}
int __wrap_munmap(void* address, size_t bytes) {
  return IsClientsMapping(address) ? 0 : __real_munmap(address, bytes);
}
}  // extern "C"

// Of a worker's environment only the other processes are missing: there is no lanewayd, and so no
// gate, and device memory comes from FakeMemory instead of the keeper.
FakeWorker::FakeWorker(int session_fd, int pinned_fd, uint32_t devices) {
  environment_.driver = &driver_;
  environment_.cublas = &ipc::NullCublas();
  environment_.cublaslt = &ipc::NullCublasLt();
  for (uint32_t i = 0; i < devices; ++i)
    environment_.contexts.push_back(reinterpret_cast<CUcontext>(uintptr_t{i} + 1));
  environment_.extents = &FakeMemory::Process();
  environment_.poison = &poison_;
  environment_.lanes = &lanes_;
  environment_.jobs = &jobs_;
  environment_.backed = &backed_;
  absl::StatusOr<ipc::SessionFile> file = ipc::SessionFile::Map(session_fd);
  if (!file.ok()) Fail("no session file");
  worker::SessionSetup setup{.session_id = kSessionId,
                             .slot = FakeMemory::kSlot,
                             .file = std::move(*file),
                             .channel = {},
                             .pinned_fd = pinned_fd};
  ipc::Channel channel = setup.file.WorkerChannel();
  std::unique_ptr<WatchedReceiver> watch =
      std::make_unique<WatchedReceiver>(std::move(channel.receiver));
  watch_ = watch.get();
  setup.channel = {std::move(channel.sender), std::move(watch)};
  std::string error;
  session_ = worker::Session::Create(std::move(setup), environment_, &error);
  if (session_ == nullptr) Fail(error.c_str());
}

FakeWorker& FakeWorker::Start(uint32_t worker_pid, const ipc::Tables& tables, uint32_t devices) {
  static FakeWorker* worker = nullptr;
  if (worker != nullptr) return *worker;
  const absl::StatusOr<int> fd = ipc::SessionFile::Create(kSessionId, FakeMemory::kSlot);
  const int pinned = memfd_create("pinned", MFD_CLOEXEC);
  if (!fd.ok() || ftruncate(pinned, static_cast<off_t>(ipc::limits::kPinnedWindowBytes)) != 0)
    Fail("no files");
  worker = new FakeWorker(*fd, dup(pinned), devices);

  ipc::Welcome welcome;
  welcome.session_id = kSessionId;
  welcome.slot = FakeMemory::kSlot;
  welcome.device_count = devices;
  welcome.worker_pid = worker_pid;
  welcome.tables = tables;
  shim::ConnectError error;
  std::unique_ptr<shim::Connection> connection = shim::Adopt(welcome, *fd, pinned, &error);
  if (connection == nullptr) Fail(error.sentence.c_str());
  close(*fd);
  close(pinned);
  worker->page_ = connection->file->page();
  shim::Client::Process().Use(std::move(connection));
  std::thread([] { worker->Run(); }).detach();  // it ends with the process
  return *worker;
}

void FakeWorker::Run() {
  is_worker_thread = true;
  session_->Run();
}

void FakeWorker::FailOnPoison::OnPoisoned(uint64_t, CUresult, const std::string&) {
  Fail("the device failed");
}

}  // namespace shim_test
