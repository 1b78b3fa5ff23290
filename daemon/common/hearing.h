// Messages of peers that each have a socket. No order holds between two sockets, so a peer's
// question may be read before an earlier message of another peer. HearOthers() handles the messages
// of the other peers first, so the answer counts them. Thread safety: one thread.
#pragma once

#include <functional>
#include <set>
#include <utility>
#include <vector>

namespace common {

class Hearing {
 public:
  // hear: receives one message there and handles it; false: nothing more from there, for now, or no
  // such connection any more.
  explicit Hearing(std::function<bool(int fd)> hear) : hear_(std::move(hear)) {}

  bool Hear(int fd) {
    speakers_.insert(fd);
    const bool more = hear_(fd);
    speakers_.erase(fd);
    return more;
  }

  // All that was said on these, but for those whose messages are being handled.
  template <typename Connections>  // by fd
  void HearOthers(const Connections& connections) {
    std::vector<int> others;
    for (const typename Connections::value_type& entry : connections) {
      if (speakers_.count(entry.first) == 0) others.push_back(entry.first);
    }
    for (const int fd : others) {
      while (Hear(fd)) {
      }
    }
  }

 private:
  const std::function<bool(int fd)> hear_;
  std::set<int> speakers_;  // whose messages are being handled
};

}  // namespace common
