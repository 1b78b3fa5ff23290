// The supervisor over real children: shells that echo, end, or send nonsense.
#include "serve/engine/supervisor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "serve/loop/poll_loop.h"

namespace serve::engine {
namespace {

Bytes BytesOf(const std::string& text) {
  const std::byte* const at = reinterpret_cast<const std::byte*>(text.data());
  return {at, at + text.size()};
}

class Client final : public Supervisor::Client {
 public:
  explicit Client(const std::string& script, size_t stages = 1)
      : supervisor(&loop, {"/bin/sh", "-c", script}, stages, this) {}

  // Until so many engines were lost.
  void Run(size_t losses) {
    losses_ = losses;
    supervisor.Start();
    loop.Run();
  }
  void OnEngineStarted() override {
    ++started;
    for (const std::string& text : sends) supervisor.SendToAll(BytesOf(text));
    for (size_t i = 0; tells_numbers && i < supervisor.stages(); ++i)
      supervisor.Send(i, BytesOf(std::to_string(i)));
  }
  void OnFrameUntrusted(size_t stage, const Bytes& body) override {
    frames.push_back(body);
    stages.push_back(stage);
    if (frames.size() ==
        (frames_max == 0 ? std::max(sends.size(), supervisor.stages()) : frames_max))
      supervisor.GiveUp("enough");
  }
  void OnEngineLost(const std::string& why) override {
    lost.push_back(why);
    if (lost.size() == losses_) loop.Stop();
  }

  PollLoop loop;
  std::vector<std::string> sends;
  bool tells_numbers = false;  // to each stage its own
  size_t frames_max = 0;       // 0: as many as were sent
  std::vector<Bytes> frames;
  std::vector<size_t> stages;  // that sent them
  std::vector<std::string> lost;
  size_t started = 0;
  Supervisor supervisor;

 private:
  size_t losses_ = 0;
};

TEST(SupervisorTest, FramesGoBothWays) {
  Client client("exec cat <&3 >&3");
  // The second one is longer than what a socket takes at once.
  client.sends = {"a", std::string(3'000'000, 'b'), "c"};
  client.Run(1);
  ASSERT_EQ(client.frames.size(), 3u);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(client.frames[i], BytesOf(client.sends[i]));
  EXPECT_EQ(client.lost, std::vector<std::string>{"enough"});
}

TEST(SupervisorTest, AnotherEngineStartsAfterALoss) {
  Client client("exit 3");
  client.Run(3);
  EXPECT_EQ(client.started, 3u);
  EXPECT_EQ(client.lost, std::vector<std::string>(3, "the engine ended with code 3"));
}

TEST(SupervisorTest, SignalsAreTold) {
  Client client("kill -9 $$");
  client.Run(1);
  EXPECT_EQ(client.lost, std::vector<std::string>{"the engine was killed by signal 9"});
}

TEST(SupervisorTest, NonsenseEndsAnEngine) {
  Client client("printf '\\377\\377\\377\\377' >&3; exec cat <&3");
  client.Run(1);
  EXPECT_EQ(client.lost, std::vector<std::string>{"the engine sends no frames of this protocol"});
}

TEST(SupervisorTest, WhatAnEngineSaysLastIsHeard) {
  Client client("printf '\\001\\000\\000\\000xyz' >&3");
  client.sends = {"unread", "unread"};
  client.Run(1);
  EXPECT_EQ(client.frames, std::vector<Bytes>{BytesOf("x")});
}

TEST(SupervisorTest, AProgramThatIsNotThereIsToldAndTriedAgain) {
  PollLoop loop;
  Client client("");
  Supervisor absent(&client.loop, {"/no/such/program"}, 3, &client);
  client.loop.AddTimer(client.loop.NowUs() + 400'000, [&] { client.loop.Stop(); });
  absent.Start();
  client.loop.Run();
  ASSERT_GE(client.lost.size(), 2u);
  EXPECT_EQ(client.lost[0], "cannot start /no/such/program: No such file or directory");
}

// Each stage adds its number to what the stage before it has sent.
constexpr const char* kChain = R"(
exec python3 -c '
import os, signal, socket, struct
front = socket.socket(fileno=3)
stage = int(front.recv(5)[4:])
text = (socket.socket(fileno=4).recv(9) if stage > 0 else b"") + b"%d" % stage
if stage < 2:
    after = socket.socket(fileno=5 if stage > 0 else 4)
    after.send(text)
front.send(struct.pack("<I", len(text)) + text)
if stage == int(os.environ.get("SUPERVISOR_TEST_DIES", -1)):
    os.kill(os.getpid(), signal.SIGKILL)
front.recv(1)
')";

TEST(SupervisorTest, StagesAreConnectedToTheirNeighbours) {
  Client client(kChain, 3);
  client.tells_numbers = true;
  client.Run(1);
  std::map<size_t, Bytes> sent;
  for (size_t i = 0; i < client.frames.size(); ++i) sent[client.stages[i]] = client.frames[i];
  EXPECT_EQ(sent,
            (std::map<size_t, Bytes>{{0, BytesOf("0")}, {1, BytesOf("01")}, {2, BytesOf("012")}}));
}

TEST(SupervisorTest, AllStagesEndWithOneAndStartAgain) {
  setenv("SUPERVISOR_TEST_DIES", "1", 1);
  Client client(kChain, 3);
  client.tells_numbers = true;
  client.frames_max = 1000;
  client.Run(2);
  unsetenv("SUPERVISOR_TEST_DIES");
  EXPECT_EQ(client.started, 2u);
  EXPECT_EQ(client.lost,
            std::vector<std::string>(2, "the engine's stage 2 was killed by signal 9"));
  EXPECT_TRUE(client.supervisor.pids().empty());
}

TEST(BackoffTest, WaitsGrowUntilAnEngineWorks) {
  Backoff backoff;
  int64_t before_us = 0;
  for (int i = 0; i < 20; ++i) {
    const int64_t wait_us = backoff.NextUs();
    EXPECT_GE(wait_us, before_us);
    before_us = wait_us;
  }
  EXPECT_EQ(before_us, Backoff::kMostUs);
  backoff.Reset();
  EXPECT_EQ(backoff.NextUs(), Backoff::kLeastUs);
}

}  // namespace
}  // namespace serve::engine
