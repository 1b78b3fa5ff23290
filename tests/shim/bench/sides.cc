#include "tests/shim/bench/sides.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "ipc/tables.h"
#include "ipc/zmq_channel.h"
#include "shim/client.h"
#include "shim/connection.h"
#include "tests/shim/bench/null_worker.h"

namespace bench {
namespace {

constexpr uint32_t kSlot = 7;

pid_t StartWorker(int session_fd, int pinned_fd, const std::string& endpoint) {
  const pid_t child = fork();
  if (child != 0) return child;
  absl::StatusOr<ipc::SessionFile> file = ipc::SessionFile::Map(session_fd);
  if (!file.ok()) Fail("mapping the session file");
  ipc::Channel channel = file->WorkerChannel();
  if (!endpoint.empty()) {
    absl::StatusOr<ipc::Channel> zmq = ipc::BindZmqChannel(endpoint, ipc::CallToken{std::byte{1}});
    if (!zmq.ok()) Fail("binding the ZeroMQ endpoint");
    channel = std::move(*zmq);
  }
  NullWorker(std::move(*file), std::move(channel), kSlot, pinned_fd).Serve();
  _exit(0);
}

}  // namespace

void Fail(const char* what) {
  std::fprintf(stderr, "benchmark: %s failed\n", what);
  std::exit(3);
}

Sides Connect(const std::string& endpoint) {
  absl::StatusOr<int> session_fd = ipc::SessionFile::Create(1, kSlot);
  if (!session_fd.ok()) Fail("making the session file");
  const int pinned_fd = memfd_create("pinned", MFD_CLOEXEC);
  if (ftruncate(pinned_fd, static_cast<off_t>(ipc::limits::kPinnedWindowBytes)) != 0)
    Fail("ftruncate");
  Sides sides;
  sides.worker = StartWorker(*session_fd, pinned_fd, endpoint);
  ipc::Welcome welcome;
  welcome.session_id = 1;
  welcome.slot = kSlot;
  welcome.device_count = 1;
  welcome.worker_pid = static_cast<uint32_t>(sides.worker);
  welcome.tables = ipc::OwnTables();
  shim::ConnectError error;
  std::unique_ptr<shim::Connection> connection =
      shim::Adopt(welcome, *session_fd, pinned_fd, &error);
  if (connection == nullptr) Fail(error.sentence.c_str());
  if (!endpoint.empty()) {
    absl::StatusOr<ipc::Channel> zmq =
        ipc::ConnectZmqChannel(endpoint, ipc::CallToken{std::byte{1}});
    if (!zmq.ok()) Fail("connecting the ZeroMQ endpoint");
    connection->channel = std::move(*zmq);
  }
  sides.page = connection->file->page();
  shim::Client::Process().Use(std::move(connection));
  return sides;
}

void Disconnect(const Sides& sides) {
  ipc::MarkLost(sides.page, CUDA_ERROR_MPS_RPC_FAILURE, "the benchmark is over");
  kill(sides.worker, SIGKILL);
  waitpid(sides.worker, nullptr, 0);
}

}  // namespace bench
