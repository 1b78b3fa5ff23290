#include "serve/front/question_socket.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"

namespace serve::front {
namespace {

constexpr int kBacklog = 16;

bool IsSameUser(int socket) {
  ucred peer{};
  socklen_t size = sizeof peer;
  return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == geteuid();
}

}  // namespace

absl::StatusOr<std::unique_ptr<QuestionSocket>> QuestionSocket::Open(EventLoop* loop,
                                                                     const std::string& path,
                                                                     Answer answer) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path)
    return absl::InvalidArgumentError(
        absl::StrCat("the path ", path, " is too long for a socket; use a shorter directory"));
  path.copy(address.sun_path, path.size());
  (void)unlink(path.c_str());
  Descriptor listener(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const mode_t before = umask(0177);
  const bool bound = listener.valid() && bind(listener.get(), reinterpret_cast<sockaddr*>(&address),
                                              sizeof address) == 0;
  const int error = errno;
  (void)umask(before);
  if (!bound || listen(listener.get(), kBacklog) != 0)
    return absl::UnavailableError(
        absl::StrCat("cannot listen at ", path, ": ", std::strerror(bound ? errno : error)));
  return std::unique_ptr<QuestionSocket>(
      new QuestionSocket(loop, path, std::move(listener), std::move(answer)));
}

QuestionSocket::QuestionSocket(EventLoop* loop, std::string path, Descriptor listener,
                               Answer answer)
    : loop_(*loop),
      path_(std::move(path)),
      listener_(std::move(listener)),
      answer_(std::move(answer)) {
  loop_.AddDescriptor(listener_.get(), POLLIN, [this](short) { Accept(); });
}

QuestionSocket::~QuestionSocket() {
  while (!connections_.empty()) Close(connections_.begin()->first);
  loop_.RemoveDescriptor(listener_.get());
  (void)unlink(path_.c_str());
}

// One at a time: the loop comes back while more wait.
void QuestionSocket::Accept() {
  Descriptor socket(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!socket.valid() || connections_.size() == kConnectionsMax || !IsSameUser(socket.get()))
    return;
  const int number = socket.get();
  Connection& connection = connections_[number];
  connection.socket = std::move(socket);
  connection.timer =
      loop_.AddTimer(loop_.NowUs() + kConnectionUs, [this, number] { Close(number); });
  loop_.AddDescriptor(number, POLLIN, [this, number](short) { Read(number); });
}

void QuestionSocket::Read(int number) {
  Connection& connection = connections_.at(number);
  char part[kQuestionBytesMax];
  const ssize_t got = recv(number, part, sizeof part, 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got > 0) connection.question.append(part, static_cast<size_t>(got));
  const size_t end = connection.question.find('\n');
  if (got <= 0 || (end == std::string::npos && connection.question.size() > kQuestionBytesMax))
    return Close(number);
  if (end == std::string::npos) return;
  connection.unsent = answer_(connection.question.substr(0, end)) + "\n";
  loop_.AddDescriptor(number, POLLOUT, [this, number](short) { Send(number); });
}

void QuestionSocket::Send(int number) {
  std::string& unsent = connections_.at(number).unsent;
  const ssize_t sent = send(number, unsent.data(), unsent.size(), MSG_NOSIGNAL);
  if (sent < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (sent > 0) unsent.erase(0, static_cast<size_t>(sent));
  if (sent <= 0 || unsent.empty()) Close(number);
}

void QuestionSocket::Close(int number) {
  loop_.CancelTimer(connections_.at(number).timer);
  loop_.RemoveDescriptor(number);
  connections_.erase(number);
}

}  // namespace serve::front
