#include "tests/protocol/program.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cassert>
#include <cstring>

#include "daemon/common/swap_file.h"

namespace protocol {
namespace {

ipc::UniqueFd Copy(int fd) { return ipc::UniqueFd(fcntl(fd, F_DUPFD_CLOEXEC, 0)); }

}  // namespace

// --- files ---------------------------------------------------------------------------------------

SessionFiles::SessionFiles(std::span<const int> fds)
    : session_(Copy(fds[0])),
      pinned_(Copy(fds[1])),
      pidfd_(Copy(fds[2])),
      swap_(Copy(fds[3])),
      page_(session_.get()),
      progress_(swap_.get()) {}

void SessionFiles::SetOnHost(bool on_host) const {
  const uint64_t count = on_host ? 1 : 0;
  const ssize_t written = pwrite(swap_.get(), &count, sizeof count, 0);
  assert(written == sizeof count);
  static_cast<void>(written);
}

std::vector<ipc::UniqueFd> SessionFiles::Copies() const {
  std::vector<ipc::UniqueFd> copies;
  for (const ipc::UniqueFd* const fd : {&session_, &pinned_, &pidfd_, &swap_})
    copies.push_back(Copy(fd->get()));
  return copies;
}

// --- the program ---------------------------------------------------------------------------------

Program::Program(pid_t pid) : pid_(pid), ended_(eventfd(0, EFD_CLOEXEC)) {}

bool Program::lost() const {
  return refused_ || (files_->valid() && files_->page().loss.load() != 0);
}

ipc::Hello Program::HelloOf() const {
  ipc::Hello hello;
  hello.tables = ipc::OwnTables();
  hello.mode = in_process  ? ipc::Mode::kInProcess
               : contained ? ipc::Mode::kContained
                           : ipc::Mode::kShared;
  return hello;
}

ipc::UniqueFd Program::Connect() {
  int pair[2];
  const int made = socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair);
  assert(made == 0);
  static_cast<void>(made);
  connection_ = ipc::UniqueFd(pair[0]);
  return ipc::UniqueFd(pair[1]);
}

ipc::UniqueFd Program::Pidfd() const { return Copy(ended_.get()); }

void Program::End() {
  if (!alive_) return;
  alive_ = false;
  eventfd_write(ended_.get(), 1);
  connection_.Reset();
}

void Program::Hear() {
  if (in_process) return;
  ipc::Welcome welcome;
  while (connection_.valid() &&
         recv(connection_.get(), &welcome, sizeof welcome, MSG_DONTWAIT) == sizeof welcome) {
    refused_ = refused_ || welcome.result != 0;
  }
}

void Program::TakeFiles(std::span<const int> fds) {
  files_ = std::make_shared<const SessionFiles>(fds);
  if (stays) files_->page().obstacles.fetch_or(ipc::kModuleState);
}

void Program::Acknowledge() {
  if (files_->valid()) files_->page().acknowledged.store(files_->page().generation.load());
}

void Program::NoteTaken() { files_->page().to_worker.tail.fetch_add(1); }

void Program::NoteQuiet() {
  files_->page().quiet_position.store(files_->page().to_worker.tail.load());
}

bool Program::quiet() const {
  return files_->page().quiet_position.load() == files_->page().to_worker.tail.load();
}

void Program::SetOnHost(Swapped swapped) {
  swapped_ = std::move(swapped);
  files_->SetOnHost(swapped_.held);
}

}  // namespace protocol
