// The page of metrics: which requests read it, and that no connection blocks the others.
#include "daemon/control/http.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "daemon/common/event_loop.h"
#include "ipc/futex.h"
#include "ipc/unique_fd.h"

namespace control {
namespace {

constexpr int kMany = 200;  // more than the server takes at once
constexpr int64_t kTimeoutS = 30;

sockaddr_in Loopback(uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

uint16_t FreePort() {
  const ipc::UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = Loopback(0);
  socklen_t bytes = sizeof address;
  EXPECT_EQ(bind(fd.get(), reinterpret_cast<sockaddr*>(&address), bytes), 0);
  EXPECT_EQ(getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &bytes), 0);
  return ntohs(address.sin_port);
}

class MetricsServerTest : public ::testing::Test {
 protected:
  MetricsServerTest() { EXPECT_TRUE(server_.Listen(port_).ok()); }

  // Connects and sends; the connection may still be in the server's queue.
  ipc::UniqueFd Send(const std::string& text) {
    ipc::UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const timeval limit{kTimeoutS, 0};
    setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    const sockaddr_in address = Loopback(port_);
    EXPECT_EQ(connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(send(fd.get(), text.data(), text.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(text.size()));
    return fd;
  }
  // The first line of the answer, while the server's loop runs.
  std::string Ask(const std::string& request) {
    std::atomic<bool> done{false};
    std::string answer;
    std::thread asker([&] {
      const ipc::UniqueFd fd = Send(request);
      char text[4096];
      const ssize_t got = recv(fd.get(), text, sizeof text, 0);
      if (got > 0) answer.assign(text, static_cast<size_t>(got));
      done.store(true);
    });
    RunUntil([&done] { return done.load(); });
    asker.join();
    return answer.substr(0, answer.find('\r'));
  }
  std::string AskAs(const std::string& host, const std::string& method = "GET") {
    return Ask(method + " /metrics HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\n\r\n");
  }
  void Hold(std::vector<ipc::UniqueFd>* held) {
    for (int i = 0; i < kMany; ++i) {
      held->push_back(Send("GET "));
      loop_.After(0, [] {});  // a round that does not wait
      loop_.RunOnce();
    }
  }
  template <class Condition>
  void RunUntil(Condition condition) {
    while (!condition()) {
      bool ticked = false;
      loop_.After(10'000, [&ticked] { ticked = true; });
      while (!ticked) loop_.RunOnce();
    }
  }

  const uint16_t port_ = FreePort();
  common::EventLoop loop_;
  MetricsServer server_{&loop_, [] { return std::string("laneway_info 1\n"); }};
};

TEST_F(MetricsServerTest, AnswersProgramsOfThisMachineAndNoWebPage) {
  EXPECT_EQ(AskAs("127.0.0.1:9"), "HTTP/1.1 200 OK");
  EXPECT_EQ(AskAs("localhost"), "HTTP/1.1 200 OK");
  EXPECT_EQ(AskAs("rebound.example:9"), "HTTP/1.1 403 Forbidden");
  EXPECT_EQ(AskAs("localhost", "HEAD"), "HTTP/1.1 405 Method Not Allowed");
}

TEST_F(MetricsServerTest, SurvivesHalfRequestsThatEndAtOnce) {
  std::vector<ipc::UniqueFd> held;
  Hold(&held);
  held.clear();
  EXPECT_EQ(AskAs("localhost"), "HTTP/1.1 200 OK");
}

TEST_F(MetricsServerTest, HalfRequestsThatAreHeldCostTimeAlone) {
  std::vector<ipc::UniqueFd> held;
  Hold(&held);
  EXPECT_EQ(AskAs("localhost"), "HTTP/1.1 200 OK");
}

TEST(MetricsHostTest, NamesOfThisMachine) {
  for (const char* const own :
       {"localhost", "LocalHost:8080", "127.0.0.1", "127.0.0.1:1", "[::1]", "[::1]:9090"}) {
    EXPECT_TRUE(IsThisMachine(own)) << own;
  }
  for (const char* const other :
       {"", ":80", "example.org", "example.org:80", "127.0.0.1.nip.io", "localhost.example:1",
        "::1", "[::2]:1", "0.0.0.0", "evil@localhost"}) {
    EXPECT_FALSE(IsThisMachine(other)) << other;
  }
}

}  // namespace
}  // namespace control
