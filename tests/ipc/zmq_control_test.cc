#include "ipc/zmq_control.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <zmq.h>

#include <thread>

#include "tests/ipc/testing.h"

namespace ipc {
namespace {

TEST(ZmqControlTest, AsksAndAnswers) {
  const TemporaryDir dir;
  const std::string endpoint = "ipc://" + dir.path() + "/c.zmq";
  ControlServer server;
  ASSERT_TRUE(server.Bind(endpoint).ok());
  std::thread asker([&endpoint] {
    for (int i = 0; i < 20; ++i) {
      const absl::StatusOr<std::string> reply =
          AskControl(endpoint, "question " + std::to_string(i), 20 * kSecondUs);
      ASSERT_TRUE(reply.ok());
      EXPECT_EQ(*reply, "answer to question " + std::to_string(i));
    }
  });
  for (int answered = 0; answered < 20;) {
    ControlServer::Request request;
    while (server.Next(&request)) {
      server.Reply(request.peer, "answer to " + request.text);
      ++answered;
    }
    pollfd entry{server.descriptor(), POLLIN, 0};
    ASSERT_GE(poll(&entry, 1, answered < 20 ? 20'000 : 0), 0);
  }
  asker.join();
}

TEST(ZmqControlTest, NobodyThereIsADeadline) {
  const TemporaryDir dir;
  EXPECT_TRUE(absl::IsDeadlineExceeded(
      AskControl("ipc://" + dir.path() + "/nobody.zmq", "hello", 50'000).status()));
  EXPECT_TRUE(absl::IsDeadlineExceeded(
      AskControl("ipc://" + dir.path() + "/nobody.zmq", "hello", 600 * kSecondUs, [] {
        return false;
      }).status()));
}

TEST(ZmqControlTest, OtherShapesAreDropped) {
  const TemporaryDir dir;
  const std::string endpoint = "ipc://" + dir.path() + "/c.zmq";
  ControlServer server;
  ASSERT_TRUE(server.Bind(endpoint).ok());
  void* const context = zmq_ctx_new();
  void* const dealer = zmq_socket(context, ZMQ_DEALER);
  ASSERT_EQ(zmq_connect(dealer, endpoint.c_str()), 0);
  zmq_send(dealer, "bare", 4, 0);  // no empty frame
  zmq_send(dealer, "", 0, ZMQ_SNDMORE);
  zmq_send(dealer, "a", 1, ZMQ_SNDMORE);
  zmq_send(dealer, "b", 1, 0);  // one frame too many
  zmq_send(dealer, "", 0, ZMQ_SNDMORE);
  zmq_send(dealer, "good", 4, 0);
  ControlServer::Request request;
  while (!server.Next(&request)) {
    pollfd entry{server.descriptor(), POLLIN, 0};
    ASSERT_GT(poll(&entry, 1, 20'000), 0);
  }
  EXPECT_EQ(request.text, "good");
  zmq_close(dealer);
  zmq_ctx_term(context);
}

}  // namespace
}  // namespace ipc
