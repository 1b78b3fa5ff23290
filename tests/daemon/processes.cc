#include "tests/daemon/processes.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

#include "ipc/environment.h"
#include "ipc/futex.h"
#include "ipc/runtime_dir.h"
#include "ipc/socket.h"
#include "ipc/zmq_control.h"

namespace control {
namespace {

constexpr int kSilenceMs = 40'000;
constexpr int64_t kAskTimeoutUs = 20'000'000;

std::string ReadFile(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace

bool WaitFor(const std::function<bool()>& condition, double seconds) {
  const int64_t deadline = ipc::MonotonicNs() + static_cast<int64_t>(seconds * 1e9);
  while (!condition()) {
    if (ipc::MonotonicNs() > deadline) return false;
    poll(nullptr, 0, 2);
  }
  return true;
}

// As long as one of its threads does: the first may be a zombie while others still have its files.
bool Alive(pid_t pid) {
  const absl::StatusOr<ipc::UniqueFd> pidfd = ipc::OpenPidfd(pid);
  return pidfd.ok() && !ipc::ProcessEnded(pidfd->get());
}

// --- Program
// -----------------------------------------------------------------------------------------

Program::Program(const std::vector<std::string>& command, const Environment& environment) {
  int in[2], out[2], err[2];
  for (int* const pipe_fds : {in, out, err}) {
    if (pipe2(pipe_fds, O_CLOEXEC) != 0) abort();
  }
  std::vector<std::string> words = command, variables;
  for (const std::pair<const std::string, std::string>& entry : environment) {
    variables.push_back(entry.first + "=" + entry.second);
  }
  const std::vector<char*> argv = ipc::PointersOf(&words), envp = ipc::PointersOf(&variables);
  pid_ = fork();
  if (pid_ == 0) {
    dup2(in[0], 0);
    dup2(out[1], 1);
    dup2(err[1], 2);
    execve(argv[0], argv.data(), envp.data());
    _exit(127);
  }
  for (const int fd : {in[0], out[1], err[1]}) close(fd);
  input_ = ipc::UniqueFd(in[1]);
  output_ = ipc::UniqueFd(out[0]);
  errors_ = ipc::UniqueFd(err[0]);
}

Program::~Program() {
  if (!waited_) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
}

void Program::Signal(int number) const { kill(pid_, number); }

void Program::Write(const std::string& line) {
  const std::string whole = line + "\n";
  if (write(input_.get(), whole.data(), whole.size()) < 0) perror("write");
}

std::string Program::ReadLine() {
  for (;;) {
    const size_t end = buffer_.find('\n');
    if (end != std::string::npos) {
      const std::string line = buffer_.substr(0, end);
      buffer_.erase(0, end + 1);
      return line;
    }
    pollfd entry{output_.get(), POLLIN, 0};
    char part[4096];
    ssize_t got = 0;
    if (poll(&entry, 1, kSilenceMs) <= 0 || (got = read(output_.get(), part, sizeof part)) <= 0)
      return {};
    buffer_.append(part, static_cast<size_t>(got));
  }
}

std::string Program::ReadAll() {
  std::string text = std::exchange(buffer_, "");
  pollfd entry{output_.get(), POLLIN, 0};
  char part[4096];
  for (ssize_t got = 1; got > 0;) {
    if (poll(&entry, 1, kSilenceMs) <= 0) break;
    got = read(output_.get(), part, sizeof part);
    if (got > 0) text.append(part, static_cast<size_t>(got));
  }
  return text;
}

int Program::Wait() {
  if (waited_) return code_;
  int status = 0;
  if (!WaitFor([this, &status] { return waitpid(pid_, &status, WNOHANG) == pid_; }, 40))
    return -1000;
  waited_ = true;
  code_ = WIFSIGNALED(status) ? -1 - WTERMSIG(status) : WEXITSTATUS(status);
  return code_;
}

std::string Program::Errors() {
  std::string text;
  char part[4096];
  fcntl(errors_.get(), F_SETFL, O_NONBLOCK);  // a child of it may still hold the other end
  for (ssize_t got = 0; (got = read(errors_.get(), part, sizeof part)) > 0;) {
    text.append(part, static_cast<size_t>(got));
  }
  return text;
}

// --- Installation
// ------------------------------------------------------------------------------------

Installation::Installation() : runtime_(root_.path() + "/run") {
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string whole = *entry;
    const size_t equals = whole.find('=');
    const std::string name = whole.substr(0, equals);
    if (name.rfind("LANEWAY_", 0) == 0 || name == "LD_PRELOAD") continue;
    environment_[name] = whole.substr(equals + 1);
  }
  environment_["LANEWAY_RUNTIME_DIR"] = runtime_;
  environment_["XDG_CONFIG_HOME"] = root_.path() + "/config";
  environment_["XDG_STATE_HOME"] = root_.path() + "/state";
}

Installation::~Installation() {
  WaitFor(
      [this] {  // again: a daemon may have started another just before its own end
        for (const pid_t pid : Processes()) kill(pid, SIGKILL);
        return Processes().empty();
      },
      10);
  if (!::testing::Test::HasFailure() || !std::filesystem::exists(runtime_ + "/log")) return;
  for (const std::filesystem::directory_entry& log :
       std::filesystem::directory_iterator(runtime_ + "/log")) {
    std::cout << "--- " << log.path().filename() << "\n" << ReadFile(log.path());
  }
}

std::string Installation::Binary(const std::string& name) const {
  return std::string(LANEWAY_TEST_INSTALL) + "/bin/" + name;
}

std::unique_ptr<Program> Installation::StartDaemon(std::string* line,
                                                   const std::vector<std::string>& flags) {
  std::vector<std::string> command = {Binary("lanewayd"), "--device=soft", "--ready-fd=1"};
  command.insert(command.end(), flags.begin(), flags.end());
  std::unique_ptr<Program> daemon = std::make_unique<Program>(command, environment_);
  *line = daemon->ReadLine();
  return daemon;
}

std::unique_ptr<Program> Installation::StartDaemon() {
  std::string line;
  std::unique_ptr<Program> daemon = StartDaemon(&line);
  EXPECT_EQ(line, "ready");
  return daemon;
}

std::unique_ptr<Program> Installation::StartClient(int sessions, const std::string& transport) {
  return std::make_unique<Program>(
      std::vector<std::string>{Binary("fake_client"), std::to_string(sessions), transport},
      environment_);
}

std::string Installation::StatusText() {
  const absl::StatusOr<std::string> reply =
      ipc::AskControl(ipc::ControlEndpoint(runtime_), R"({"command":"status"})", kAskTimeoutUs);
  return reply.ok() ? *reply : "{}";
}

nlohmann::json Installation::Ask(const std::string& request) {
  const absl::StatusOr<std::string> reply =
      ipc::AskControl(ipc::ControlEndpoint(runtime_), request, kAskTimeoutUs);
  return reply.ok() ? nlohmann::json::parse(*reply) : nlohmann::json();
}

std::vector<pid_t> Installation::Processes(const std::string& name) const {
  std::vector<pid_t> found;
  const std::string mine = "LANEWAY_RUNTIME_DIR=" + runtime_;
  for (const std::filesystem::directory_entry& entry :
       std::filesystem::directory_iterator("/proc")) {
    const std::string number = entry.path().filename();
    if (number.find_first_not_of("0123456789") != std::string::npos || !Alive(std::stoi(number)))
      continue;
    std::error_code error;
    const std::string program =
        std::filesystem::read_symlink(entry.path() / "exe", error).filename();
    if (error ||
        (program != "lanewayd" && program != "laneway-keeper" && program != "laneway-worker"))
      continue;
    if (!name.empty() && program != name) continue;
    if (ReadFile(entry.path() / "environ").find(mine + '\0') != std::string::npos)
      found.push_back(std::stoi(number));
  }
  return found;
}

std::string Installation::Log(const std::string& process) const {
  return ReadFile(ipc::LogPath(runtime_, process));
}

std::vector<std::string> Installation::Sockets() const {
  std::vector<std::string> sockets;
  for (const std::filesystem::directory_entry& entry :
       std::filesystem::directory_iterator(runtime_)) {
    if (entry.is_socket()) sockets.push_back(entry.path().filename());
  }
  return sockets;
}

}  // namespace control
