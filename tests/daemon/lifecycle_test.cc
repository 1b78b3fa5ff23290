// A daemon, its keeper and its workers as processes: starting, serving, dying, being replaced.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <filesystem>
#include <fstream>

#include "ipc/calls/limits.h"
#include "ipc/futex.h"
#include "ipc/hello.h"
#include "ipc/runtime_dir.h"
#include "ipc/socket.h"
#include "tests/daemon/processes.h"
#include "tests/harness/seed.h"

namespace control {
namespace {

constexpr uint64_t kExtentBytes = ipc::limits::kExtentBytesMin;  // each fake session holds one

class LifecycleTest : public ::testing::Test {
 protected:
  std::unique_ptr<Program> Client(int sessions = 1, const std::string& transport = "ring") {
    std::unique_ptr<Program> client = installation_.StartClient(sessions, transport);
    for (int i = 0; i < sessions; ++i) EXPECT_EQ(client->ReadLine().rfind("open ", 0), 0u);
    EXPECT_EQ(client->ReadLine(), "ready");
    return client;
  }
  void ExpectServes(Program* client) {
    client->Write("ping");
    EXPECT_EQ(client->ReadLine(), "pong");
  }
  pid_t Only(const std::string& name) {
    const std::vector<pid_t> pids = installation_.Processes(name);
    EXPECT_EQ(pids.size(), 1u) << name;
    return pids.empty() ? 0 : pids[0];
  }
  void KillAndWait(pid_t pid) {
    kill(pid, SIGKILL);
    EXPECT_TRUE(WaitFor([pid] { return !Alive(pid); }));
  }
  uint64_t UsedBytes() {
    return installation_.Status()["devices"][0]["used_bytes"].get<uint64_t>();
  }
  size_t Sessions() { return installation_.Status()["sessions"].size(); }
  void ExpectNothingLeft() {
    EXPECT_TRUE(WaitFor([this] { return installation_.Processes().empty(); }));
    EXPECT_EQ(installation_.Sockets(), std::vector<std::string>{});
  }

  Installation installation_;
};

TEST_F(LifecycleTest, StartsServesAndStops) {
  const std::unique_ptr<Program> daemon = installation_.StartDaemon();
  const nlohmann::json status = installation_.Status();
  EXPECT_EQ(status["keeper"]["state"], "ready");
  EXPECT_EQ(status["workers"].size(), 1u);
  EXPECT_EQ(status["devices"][0]["name"], "fake device");
  EXPECT_TRUE(status["sessions"].empty());
  EXPECT_TRUE(installation_.Ask(R"({"command":"stop"})")["ok"].get<bool>());
  EXPECT_EQ(daemon->Wait(), 0);
  ExpectNothingLeft();
}

TEST_F(LifecycleTest, ASecondDaemonIsRefused) {
  const std::unique_ptr<Program> daemon = installation_.StartDaemon();
  std::string line;
  const std::unique_ptr<Program> second = installation_.StartDaemon(&line);
  EXPECT_EQ(second->Wait(), 1);
  EXPECT_NE(line.find(std::to_string(daemon->pid())), std::string::npos) << line;
  ExpectServes(Client().get());
}

TEST_F(LifecycleTest, AClientIsServedOverEachTransport) {
  const std::unique_ptr<Program> daemon = installation_.StartDaemon();
  for (const char* const transport : {"ring", "zmq"}) {
    const std::unique_ptr<Program> client = Client(1, transport);
    ExpectServes(client.get());
    const nlohmann::json sessions = installation_.Status()["sessions"];
    ASSERT_EQ(sessions.size(), 1u);
    EXPECT_EQ(sessions[0]["pid"], client->pid());
    EXPECT_EQ(sessions[0]["transport"], transport);
    EXPECT_EQ(sessions[0]["device_bytes"], kExtentBytes);
    client->CloseInput();
    EXPECT_EQ(client->Wait(), 0);
    EXPECT_TRUE(WaitFor([this] { return Sessions() == 0; }));
    EXPECT_EQ(UsedBytes(), 0u);
  }
}

TEST_F(LifecycleTest, StopIsRefusedWhileAProgramRuns) {
  const std::unique_ptr<Program> daemon = installation_.StartDaemon();
  const std::unique_ptr<Program> client = Client();
  const nlohmann::json refused = installation_.Ask(R"({"command":"stop"})");
  EXPECT_FALSE(refused["ok"].get<bool>());
  EXPECT_NE(refused["sentence"].get<std::string>().find("--force"), std::string::npos);
  ExpectServes(client.get());
  EXPECT_TRUE(installation_.Ask(R"({"command":"stop","force":true})")["ok"].get<bool>());
  client->Write("loss");
  EXPECT_EQ(client->ReadLine().rfind("loss 806 Laneway was stopped", 0), 0u);
  EXPECT_EQ(daemon->Wait(), 0);
  ExpectNothingLeft();
}

TEST_F(LifecycleTest, AKilledClientLeavesNoTrace) {
  const std::unique_ptr<Program> daemon = installation_.StartDaemon();
  const std::unique_ptr<Program> neighbour = Client();
  const std::string before = installation_.StatusText();
  EXPECT_EQ(installation_.StatusText(), before);
  for (const char* const transport : {"ring", "zmq", "ring"}) {
    const std::unique_ptr<Program> victim = Client(2, transport);
    victim->Signal(SIGKILL);
    const int64_t begin = ipc::MonotonicNs();
    EXPECT_TRUE(WaitFor([this, &before] { return installation_.StatusText() == before; }, 1.0))
        << installation_.StatusText() << "\n"
        << before;
    std::cout << "time: " << (ipc::MonotonicNs() - begin) / 1'000'000
              << " ms until status was the earlier one\n";
    victim->Wait();
  }
  ExpectServes(neighbour.get());
}

TEST_F(LifecycleTest, TheSessionAfterTheLastIsRefused) {
  const std::unique_ptr<Program> daemon = installation_.StartDaemon();
  const std::unique_ptr<Program> most = Client(ipc::limits::kSessionsMax - 1);
  std::unique_ptr<Program> last = Client();
  const std::unique_ptr<Program> refused = installation_.StartClient();
  EXPECT_EQ(refused->ReadLine().rfind("refused 808 ", 0), 0u);
  // The place of a program that has just ended is waited for.
  last->Signal(SIGKILL);
  last->Wait();
  last = Client();
  ExpectServes(last.get());
}

// --- processes that die --------------------------------------------------------------------------

TEST_F(LifecycleTest, ADaemonThatDiesIsReplacedAndAdopts) {
  std::unique_ptr<Program> daemon = installation_.StartDaemon();
  const std::unique_ptr<Program> client = Client(2), zmq_client = Client(1, "zmq");
  const nlohmann::json before = installation_.Status();
  daemon->Signal(SIGKILL);
  daemon->Wait();
  client->Write("ping");
  EXPECT_EQ(client->ReadLine(), "pong");
  EXPECT_EQ(client->ReadLine(), "pong");
  daemon = installation_.StartDaemon();
  nlohmann::json after = installation_.Status();
  for (const char* const part : {"keeper", "workers", "devices", "jobs"})
    EXPECT_EQ(after[part], before[part]);
  ASSERT_EQ(after["sessions"].size(), 3u);
  for (size_t i = 0; i < 3; ++i)
    EXPECT_EQ(after["sessions"][i]["pid"], before["sessions"][i]["pid"]);
  ExpectServes(zmq_client.get());
  const std::unique_ptr<Program> next = Client();
  EXPECT_GT(installation_.Status()["sessions"][3]["id"], after["sessions"][2]["id"]);
  client->Signal(SIGKILL);
  EXPECT_TRUE(WaitFor([this] { return Sessions() == 2; }, 1.0));
  EXPECT_EQ(UsedBytes(), 2 * kExtentBytes);
}

// A driver may take seconds to start: the daemon has ended by then, and the next one has begun.
TEST_F(LifecycleTest, ADaemonThatDiesWhileItsWorkerStartsLeavesNone) {
  const std::string hold = installation_.dir() + ".hold", worker = hold + ".laneway-worker";
  installation_.environment()["LANEWAY_FAKE_HOLD"] = hold;
  std::ofstream(worker) << "";
  const auto workers = [this] { return installation_.Processes("laneway-worker").size(); };
  std::unique_ptr<Program> daemon;  // each is killed by the next
  for (size_t started = 1; started <= 3; ++started) {
    daemon.reset();
    daemon = std::make_unique<Program>(
        std::vector<std::string>{installation_.Binary("lanewayd"), "--device=soft"},
        installation_.environment());
    EXPECT_TRUE(WaitFor([&] { return workers() == started; }));
  }
  std::filesystem::remove(worker);
  EXPECT_TRUE(WaitFor([&] { return workers() == 1; }));
  ExpectServes(Client().get());
  const nlohmann::json status = installation_.Status();
  ASSERT_EQ(status["workers"].size(), 1u);
  EXPECT_EQ(status["workers"][0]["number"], 3) << "no two that live have one number";
  EXPECT_EQ(installation_.Processes("laneway-keeper").size(), 1u);
  EXPECT_TRUE(WaitFor([this] { return Sessions() == 0; }));
  daemon->Signal(SIGTERM);
  EXPECT_EQ(daemon->Wait(), 0);
  ExpectNothingLeft();
}

TEST_F(LifecycleTest, ADaemonToldToEndLeavesProgramsAlone) {
  std::unique_ptr<Program> daemon = installation_.StartDaemon();
  const std::unique_ptr<Program> client = Client();
  daemon->Signal(SIGTERM);
  EXPECT_EQ(daemon->Wait(), 0);
  ExpectServes(client.get());
  daemon = installation_.StartDaemon();
  EXPECT_EQ(Sessions(), 1u);
  client->CloseInput();
  EXPECT_TRUE(WaitFor([this] { return Sessions() == 0; }));
  daemon->Signal(SIGTERM);  // with nobody there, everything ends
  EXPECT_EQ(daemon->Wait(), 0);
  ExpectNothingLeft();
}

TEST_F(LifecycleTest, AKeeperThatDiesIsReplacedAndAdoptsItsMemory) {
  const std::unique_ptr<Program> daemon = installation_.StartDaemon();
  const std::unique_ptr<Program> client = Client(3);
  const pid_t keeper = Only("laneway-keeper");
  KillAndWait(keeper);
  const std::unique_ptr<Program> next = Client();  // its allocation waits for the new keeper
  EXPECT_NE(Only("laneway-keeper"), keeper);
  EXPECT_TRUE(WaitFor([this] { return UsedBytes() == 4 * kExtentBytes; }))
      << installation_.StatusText();
  client->Signal(SIGKILL);
  EXPECT_TRUE(WaitFor([this] { return UsedBytes() == kExtentBytes; }, 1.0))
      << installation_.StatusText();
}

TEST_F(LifecycleTest, AWorkerThatDiesCostsItsSessionsAndNoOthers) {
  const std::unique_ptr<Program> daemon = installation_.StartDaemon();
  const std::unique_ptr<Program> client = Client(2);
  client->Write("ping");  // the pretended session is never done with what it took
  for (int i = 0; i < 2; ++i) EXPECT_EQ(client->ReadLine(), "pong");
  const pid_t worker = Only("laneway-worker");
  const int64_t begin = ipc::MonotonicNs();
  kill(worker, SIGKILL);
  client->Write("loss");
  EXPECT_EQ(client->ReadLine().rfind("loss 806 ", 0), 0u);
  EXPECT_EQ(client->ReadLine().rfind("loss 806 ", 0), 0u);
  EXPECT_LT(ipc::MonotonicNs() - begin, 1'000'000'000);
  const std::unique_ptr<Program> next = Client();
  ExpectServes(next.get());
  EXPECT_NE(Only("laneway-worker"), worker);
  EXPECT_EQ(UsedBytes(), kExtentBytes);
  const nlohmann::json status = installation_.Status();
  EXPECT_EQ(status["sessions"][0]["state"], "lost");
  EXPECT_EQ(status["faults"].size(), 1u);
  client->CloseInput();
  client->Wait();
  EXPECT_TRUE(WaitFor([this] { return Sessions() == 1; }));
}

TEST_F(LifecycleTest, ADaemonAndAWorkerThatDieTogetherLeaveNoMemoryTaken) {
  std::unique_ptr<Program> daemon = installation_.StartDaemon();
  const std::unique_ptr<Program> client = Client(2);
  EXPECT_EQ(UsedBytes(), 2 * kExtentBytes);
  daemon->Signal(SIGKILL);
  daemon->Wait();
  KillAndWait(Only("laneway-worker"));
  daemon = installation_.StartDaemon();
  EXPECT_EQ(UsedBytes(), 0u);
  ExpectServes(Client().get());
}

TEST_F(LifecycleTest, ADaemonAndAKeeperThatDieTogetherAreReplaced) {
  std::unique_ptr<Program> daemon = installation_.StartDaemon();
  const std::unique_ptr<Program> client = Client(2);
  daemon->Signal(SIGKILL);
  daemon->Wait();
  KillAndWait(Only("laneway-keeper"));
  daemon = installation_.StartDaemon();
  EXPECT_TRUE(WaitFor([this] { return UsedBytes() == 2 * kExtentBytes; }))
      << installation_.StatusText();
  const std::unique_ptr<Program> next = Client();
  EXPECT_EQ(UsedBytes(), 3 * kExtentBytes);
}

TEST_F(LifecycleTest, APoisonedWorkerNamesTheFault) {
  const std::string fault = installation_.dir() + ".fault";
  installation_.environment()["LANEWAY_FAKE_FAULT"] = fault;
  const std::unique_ptr<Program> daemon = installation_.StartDaemon();
  const std::unique_ptr<Program> client = Client();
  const std::string staged = fault + ".new";
  std::ofstream(staged) << "kernel Stray strayed at line 7";
  std::filesystem::rename(staged, fault);
  client->Write("loss");
  EXPECT_EQ(client->ReadLine(), "loss 700 kernel Stray strayed at line 7");
  std::filesystem::remove(fault);
  EXPECT_TRUE(WaitFor([this] { return !installation_.Status()["faults"].empty(); }));
  const nlohmann::json faults = installation_.Status()["faults"];
  ASSERT_EQ(faults.size(), 1u);
  EXPECT_EQ(faults[0]["code"], 700);
  EXPECT_EQ(faults[0]["program"], "fake_client");
  EXPECT_EQ(faults[0]["text"], "kernel Stray strayed at line 7");
  ExpectServes(Client().get());
}

// --- what can't start, and what ends by itself ---------------------------------------------------

TEST_F(LifecycleTest, ADriverThatDoesNotStartIsToldAndNothingStays) {
  installation_.environment()["LANEWAY_FAKE_NO_DEVICE"] = "1";
  std::string line;
  const std::unique_ptr<Program> daemon = installation_.StartDaemon(&line);
  EXPECT_EQ(daemon->Wait(), 1);
  EXPECT_NE(line.find("cuInit"), std::string::npos) << line;
  ExpectNothingLeft();
}

TEST_F(LifecycleTest, ADaemonWithoutProgramsEndsByItself) {
  std::unique_ptr<Program> daemon = installation_.StartDaemon();
  const std::unique_ptr<Program> client = Client();
  daemon->Signal(SIGTERM);
  EXPECT_EQ(daemon->Wait(), 0);
  std::string line;  // the next one has a program from its beginning
  daemon = installation_.StartDaemon(&line, {"--linger=1"});
  EXPECT_EQ(line, "ready");
  ExpectServes(client.get());
  client->CloseInput();
  EXPECT_EQ(daemon->Wait(), 0);
  ExpectNothingLeft();
}

TEST_F(LifecycleTest, KeeperAndWorkerWithoutADaemonEndByThemselves) {
  std::string line;  // the daemon's own time runs while its worker and the client start
  const std::unique_ptr<Program> daemon = installation_.StartDaemon(&line, {"--linger=8"});
  EXPECT_EQ(line, "ready");
  const std::unique_ptr<Program> client = Client();
  daemon->Signal(SIGKILL);
  daemon->Wait();
  ExpectServes(client.get());
  client->CloseInput();
  EXPECT_TRUE(WaitFor([this] { return installation_.Processes().empty(); }, 40));
}

TEST_F(LifecycleTest, NoRoomForRingsIsAnError) {
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit small{4 << 20, before.rlim_max};  // less than a session file, more than the logs
  setrlimit(RLIMIT_FSIZE, &small);
  const std::unique_ptr<Program> daemon = installation_.StartDaemon();
  setrlimit(RLIMIT_FSIZE, &before);
  const std::unique_ptr<Program> refused = installation_.StartClient();
  EXPECT_EQ(refused->ReadLine().rfind("refused 304 ", 0), 0u);
  EXPECT_EQ(Sessions(), 0u);
}

TEST_F(LifecycleTest, GarbageAtTheDoorHarmsNobody) {
  const std::unique_ptr<Program> daemon = installation_.StartDaemon();
  std::mt19937_64 random(harness::Seed());
  for (int round = 0; round < 300; ++round) {
    const absl::StatusOr<ipc::UniqueFd> socket =
        ipc::ConnectTo(ipc::HelloSocketPath(installation_.dir()));
    ASSERT_TRUE(socket.ok());
    std::vector<std::byte> bytes(random() % 400);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
    const uint32_t fixed[3] = {ipc::kHelloMagic, ipc::kProtocolVersion, sizeof(ipc::Hello)};
    if (bytes.size() >= sizeof fixed && round % 2 == 0)
      std::memcpy(bytes.data(), fixed, sizeof fixed);
    if (!bytes.empty()) (void)ipc::SendPacket(socket->get(), bytes);
  }
  ExpectServes(Client().get());
  EXPECT_TRUE(WaitFor([this] { return Sessions() == 0; }));
}

ipc::Welcome AnswerTo(const ipc::Hello& hello, const std::string& dir) {
  ipc::Welcome welcome;
  welcome.result = 999;  // no answer
  const absl::StatusOr<ipc::UniqueFd> socket = ipc::ConnectTo(ipc::HelloSocketPath(dir));
  if (!socket.ok()) return welcome;
  (void)ipc::SendPacket(socket->get(), {reinterpret_cast<const std::byte*>(&hello), sizeof hello});
  const absl::StatusOr<ipc::Packet> packet = ipc::ReceivePacket(socket->get(), 20'000'000);
  if (packet.ok() && packet->bytes.size() == sizeof welcome)
    std::memcpy(&welcome, packet->bytes.data(), sizeof welcome);
  return welcome;
}

TEST_F(LifecycleTest, ABuildOfFewerOrMoreCallsIsServedAndOneOfOtherCallsIsNot) {
  const std::unique_ptr<Program> daemon = installation_.StartDaemon();
  constexpr size_t kOurs = static_cast<size_t>(ipc::Library::kLaneway);
  ipc::Hello hello;
  hello.tables = ipc::OwnTables();
  hello.tables.hash[kOurs] = ipc::TableHash(ipc::Library::kLaneway, --hello.tables.rows[kOurs]);
  EXPECT_EQ(AnswerTo(hello, installation_.dir()).result, 0u);
  hello.tables = ipc::OwnTables();
  ++hello.tables.rows[kOurs];
  ++hello.tables.hash[kOurs];
  const ipc::Welcome newer = AnswerTo(hello, installation_.dir());
  EXPECT_EQ(newer.result, 0u);  // it sees in the answer what it must not call
  EXPECT_EQ(newer.tables.rows[kOurs], ipc::OwnTables().rows[kOurs]);
  --hello.tables.rows[kOurs];
  const ipc::Welcome other = AnswerTo(hello, installation_.dir());
  EXPECT_EQ(other.result, 803u);
  EXPECT_NE(std::string(other.sentence).find("different calls"), std::string::npos);
}

TEST_F(LifecycleTest, AnotherVersionIsToldInWords) {
  const std::unique_ptr<Program> daemon = installation_.StartDaemon();
  ipc::Hello hello;
  hello.protocol_version = 999;
  const ipc::Welcome welcome = AnswerTo(hello, installation_.dir());
  EXPECT_EQ(welcome.result, 803u);
  const std::string sentence = welcome.sentence;
  EXPECT_NE(sentence.find("999"), std::string::npos);
  EXPECT_NE(sentence.find(std::to_string(ipc::kProtocolVersion)), std::string::npos);
}

}  // namespace
}  // namespace control
