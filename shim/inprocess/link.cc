#include "shim/inprocess/link.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <utility>

#include "base/mutex.h"
#include "ipc/futex.h"
#include "ipc/hello.h"
#include "ipc/socket.h"
#include "shim/service_thread.h"

namespace shim::inprocess {
namespace {

constexpr int64_t kLookUs = 250'000;  // at least so often the descriptor is looked at
// Between two hellos while there is no lanewayd, which may last for days. The link keeps no watch
// on the runtime directory meanwhile (next_daemon.h): the program may close the watch's descriptor
// and reuse its number, and the link would then read the program's bytes.
constexpr int64_t kAgainUs = 250'000;

ino_t InodeOf(int fd) {
  struct stat info;
  return fstat(fd, &info) == 0 ? info.st_ino : 0;
}

}  // namespace

bool Link::Start(ConnectError* error) {
  if (!Connect(error)) return false;
  const auto run = [](void* self) -> void* {
    static_cast<Link*>(self)->Serve();
    return nullptr;
  };
  if (StartServiceThread(run, this)) return true;
  *error = {CUDA_ERROR_OPERATING_SYSTEM, "no thread can be started; raise ulimit -u"};
  return false;
}

bool Link::Connect(ConnectError* error) {
  if (Greet(error)) return true;
  hooks_.down();
  return false;
}

bool Link::Greet(ConnectError* error) {
  ipc::Hello hello = MakeHello();
  hello.session_id = session_id();
  hello.session_seal = seal_;
  hello.held_bytes = hooks_.hello();
  Welcomed welcomed;
  if (!SayHello(hello, &welcomed, error)) return false;
  // What an earlier daemon counted in stays mapped: a thread may be about to write there.
  void* const page =
      mmap(nullptr, ipc::kPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED, welcomed.fds[0].get(), 0);
  if (page == MAP_FAILED) {
    *error = {CUDA_ERROR_OPERATING_SYSTEM, "the session's page cannot be mapped (ulimit -v)"};
    return false;
  }
  session_id_.store(welcomed.welcome.session_id, std::memory_order_relaxed);
  seal_ = welcomed.welcome.session_seal;
  {
    const base::MutexLock lock(&mutex_);
    if (socket_.valid() && InodeOf(socket_.get()) != inode_) socket_.Release();
    socket_ = std::move(welcomed.socket);
    inode_ = InodeOf(socket_.get());
  }
  there_.store(true, std::memory_order_release);
  hooks_.up(welcomed.welcome.session_id, static_cast<ipc::SessionPage*>(page));
  return true;
}

bool Link::Ours() const { return socket_.valid() && InodeOf(socket_.get()) == inode_; }

void Link::Tell(const ipc::control::ProgramToDaemon& message) {
  const base::MutexLock lock(&mutex_);
  if (there() && Ours())
    (void)ipc::control::Send<ipc::control::ProgramToDaemon>(socket_.get(), message);
}

void Link::Serve() {
  std::atomic<uint32_t> never{0};
  for (;;) {
    absl::StatusOr<ipc::control::Received<ipc::control::DaemonToProgram>> received =
        absl::UnavailableError("closed");
    if (Ours())
      received = ipc::control::Receive<ipc::control::DaemonToProgram>(socket_.get(), kLookUs);
    if (received.ok()) {
      hooks_.message(received->message);
      continue;
    }
    if (absl::IsDeadlineExceeded(received.status())) continue;
    // An earlier build of lanewayd sends to programs what it sends to workers.
    if (absl::IsInvalidArgument(received.status())) continue;
    there_.store(false, std::memory_order_release);
    hooks_.down();
    ConnectError error;
    while (!Connect(&error)) ipc::FutexWait(&never, 0, kAgainUs);
  }
}

}  // namespace shim::inprocess
