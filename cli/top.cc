#include "cli/top.h"

#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

#include <cstdio>

#include "absl/strings/str_replace.h"
#include "cli/fronts.h"
#include "cli/top_text.h"
#include "ipc/unique_fd.h"

namespace cli {
namespace {

constexpr int kRefreshMs = 1000;
constexpr char kAsk[] = R"({"command":"top"})";

// The terminal's other screen, without echo, as long as this lives.
class Screen {
 public:
  Screen() {
    sigset_t signals;
    sigemptyset(&signals);
    for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGWINCH}) sigaddset(&signals, number);
    sigprocmask(SIG_BLOCK, &signals, &mask_before_);
    signals_ = ipc::UniqueFd(signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
    keys_ = tcgetattr(STDIN_FILENO, &before_) == 0;
    if (keys_) {
      termios raw = before_;
      raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
      raw.c_cc[VSUSP] = _POSIX_VDISABLE;
      raw.c_cc[VMIN] = 0;
      raw.c_cc[VTIME] = 0;
      tcsetattr(STDIN_FILENO, TCSANOW, &raw);
    }
    std::fputs("\x1b[?1049h\x1b[?25l", stdout);
  }
  ~Screen() {
    std::fputs("\x1b[?25h\x1b[?1049l", stdout);
    std::fflush(stdout);
    if (keys_) tcsetattr(STDIN_FILENO, TCSANOW, &before_);
    sigprocmask(SIG_SETMASK, &mask_before_, nullptr);
  }
  Screen(const Screen&) = delete;

  void Show(const std::string& top_json) const {
    winsize size{};
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row == 0) size = {24, 80, 0, 0};
    // One line is left free, so that the last line's end does not scroll.
    const std::string text = TopText(top_json, size.ws_col, size.ws_row - 1u);
    // Clears what is right of each line and below, so that nothing flickers.
    std::printf("\x1b[H%s\x1b[J", absl::StrReplaceAll(text, {{"\n", "\x1b[K\n"}}).c_str());
    std::fflush(stdout);
  }

  // Until it is time for the next picture. False: the person wants to leave.
  bool Wait() const {
    pollfd entries[] = {{signals_.get(), POLLIN, 0}, {STDIN_FILENO, POLLIN, 0}};
    poll(entries, keys_ ? 2 : 1, kRefreshMs);
    signalfd_siginfo info;
    while (read(signals_.get(), &info, sizeof info) == sizeof info) {
      if (info.ssi_signo != SIGWINCH) return false;
    }
    if (!keys_ || (entries[1].revents & (POLLIN | POLLHUP)) == 0) return true;
    char key = 0;
    const ssize_t got = read(STDIN_FILENO, &key, 1);
    return got > 0 ? key != 'q' && key != 'Q' : (entries[1].revents & POLLHUP) == 0;
  }

 private:
  termios before_{};
  sigset_t mask_before_{};
  ipc::UniqueFd signals_;
  bool keys_ = false;
};

absl::StatusOr<std::string> AskForTop(const Request& request) {
  absl::StatusOr<std::string> reply = AskDaemon(request, kAsk);
  if (!reply.ok()) return reply;
  return WithModels(*reply, DirOf(request));
}

}  // namespace

int Top(const Request& request) {
  absl::StatusOr<std::string> reply = AskForTop(request);
  if (!reply.ok()) return Say(1, std::string(reply.status().message()));
  if (request.json || request.once || isatty(STDOUT_FILENO) == 0) {
    std::fputs(request.json ? (*reply + "\n").c_str() : TopText(*reply, 0, 0).c_str(), stdout);
    return 0;
  }
  {
    const Screen screen;
    while (reply.ok()) {
      screen.Show(*reply);
      if (!screen.Wait()) return 0;
      reply = AskForTop(request);
    }
  }
  return Say(1, std::string(reply.status().message()));
}

}  // namespace cli
