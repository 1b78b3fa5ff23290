// Hellos that say what is not so: whose session it was, how much memory it has, whose job it is of.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>

#include "ipc/control.h"
#include "ipc/hello.h"
#include "ipc/job.h"
#include "ipc/runtime_dir.h"
#include "ipc/socket.h"
#include "tests/daemon/processes.h"

namespace control {
namespace {

constexpr int64_t kTimeoutUs = 30'000'000;
constexpr uint64_t kLimit = uint64_t{64} << 20;

class HelloTest : public ::testing::Test {
 protected:
  struct Connection {
    ipc::UniqueFd socket;
    std::vector<ipc::UniqueFd> fds;
    ipc::Welcome welcome;
  };

  // The test itself is the program.
  Connection Say(ipc::Hello hello) {
    hello.tables = ipc::OwnTables();
    ipc::control::SetText(hello.program, "liar");
    Connection made;
    absl::StatusOr<ipc::UniqueFd> socket =
        ipc::ConnectTo(ipc::HelloSocketPath(installation_.dir()));
    EXPECT_TRUE(socket.ok()) << socket.status();
    made.socket = std::move(*socket);
    EXPECT_TRUE(ipc::SendPacket(made.socket.get(), std::as_bytes(std::span(&hello, 1))).ok());
    absl::StatusOr<ipc::Packet> packet = ipc::ReceivePacket(made.socket.get(), kTimeoutUs);
    EXPECT_TRUE(packet.ok()) << packet.status();
    if (!packet.ok() || packet->bytes.size() != sizeof made.welcome) return made;
    std::memcpy(&made.welcome, packet->bytes.data(), sizeof made.welcome);
    made.fds = std::move(packet->fds);
    EXPECT_EQ(made.welcome.result, 0u) << made.welcome.sentence;
    return made;
  }
  static ipc::Hello InProcess() {
    ipc::Hello hello;
    hello.mode = ipc::Mode::kInProcess;
    return hello;
  }
  nlohmann::json SessionOf(const Connection& connection) {
    const nlohmann::json status = installation_.Status();
    for (const nlohmann::json& session : status["sessions"]) {
      if (session["id"] == connection.welcome.session_id) return session;
    }
    return {};
  }
  uint64_t FreeBytes() {
    return installation_.Status()["devices"][0]["free_bytes"].get<uint64_t>();
  }
  // As `laneway run --memory` asks for it.
  ipc::JobTicket NewJob(uint64_t limit_bytes, const std::string& outer = "") {
    const nlohmann::json answer = installation_.Ask(
        nlohmann::json{{"command", "job"}, {"bytes", limit_bytes}, {"ticket", outer}}.dump());
    return ipc::ParseTicketUntrusted(answer["ticket"].get<std::string>()).value();
  }

  Installation installation_;
};

TEST_F(HelloTest, WhoNamesASessionWithoutItsSealIsANewOne) {
  const std::unique_ptr<Program> daemon = installation_.StartDaemon();
  const uint64_t free = FreeBytes();
  ipc::Hello hello = InProcess();
  hello.session_id = 4711;
  hello.held_bytes = UINT64_MAX;
  const Connection liar = Say(hello);
  EXPECT_NE(liar.welcome.session_id, 4711u);
  EXPECT_EQ(FreeBytes(), free) << "what it says to have is not counted";
}

TEST_F(HelloTest, WhoGoesOnIsKnownToTheNextDaemonAndHoldsWhatItCan) {
  std::unique_ptr<Program> daemon = installation_.StartDaemon();
  const nlohmann::json device = installation_.Status()["devices"][0];
  const uint64_t capacity = device["capacity_bytes"].get<uint64_t>();
  std::optional<Connection> program = Say(InProcess());
  const ipc::Welcome welcome = program->welcome;
  daemon->Signal(SIGKILL);
  daemon->Wait();
  daemon = installation_.StartDaemon();
  ipc::Hello hello = InProcess();
  hello.session_id = welcome.session_id;
  hello.session_seal = welcome.session_seal;
  hello.held_bytes = uint64_t{32} << 20;
  program = Say(hello);
  EXPECT_EQ(program->welcome.session_id, welcome.session_id);
  EXPECT_TRUE(WaitFor([&] { return capacity - FreeBytes() == hello.held_bytes; }))
      << installation_.StatusText();
  hello.held_bytes = UINT64_MAX;  // more than there is, in the place of the same session
  program = Say(hello);
  EXPECT_EQ(program->welcome.session_id, welcome.session_id);
  EXPECT_TRUE(WaitFor([&] { return SessionOf(*program)["device_bytes"] == capacity; }))
      << installation_.StatusText();
}

TEST_F(HelloTest, TheSealOfOneSessionOpensNoOther) {
  const std::unique_ptr<Program> daemon = installation_.StartDaemon();
  const Connection first = Say(InProcess());
  ipc::Hello hello = InProcess();
  hello.session_id = first.welcome.session_id + 100;
  hello.session_seal = first.welcome.session_seal;
  EXPECT_NE(Say(hello).welcome.session_id, hello.session_id);
}

TEST_F(HelloTest, AJobIsJoinedByItsTicketAlone) {
  std::unique_ptr<Program> daemon = installation_.StartDaemon();
  ipc::Hello hello;
  hello.job = NewJob(kLimit);
  std::optional<Connection> child = Say(hello);
  EXPECT_EQ(SessionOf(*child)["job"], hello.job.terms.number);
  EXPECT_EQ(SessionOf(*child)["memory_limit_bytes"], kLimit);

  ipc::Hello thief;
  thief.job = hello.job;
  thief.job.terms.memory_limit_bytes = 1;
  const Connection stranger = Say(thief);
  EXPECT_NE(SessionOf(stranger)["job"], hello.job.terms.number);
  EXPECT_EQ(SessionOf(stranger)["memory_limit_bytes"], 0u);
  EXPECT_EQ(SessionOf(*child)["memory_limit_bytes"], kLimit) << "and nobody's limit has changed";

  thief.job.terms.number = UINT64_MAX;
  EXPECT_LT(SessionOf(Say(thief))["job"].get<uint64_t>(), 100u);
}

TEST_F(HelloTest, ATicketIsGoodForTheDaemonsThatFollow) {
  std::unique_ptr<Program> daemon = installation_.StartDaemon();
  ipc::Hello hello;
  hello.job = NewJob(kLimit);
  daemon->Signal(SIGKILL);
  daemon->Wait();
  daemon = installation_.StartDaemon();
  const Connection child = Say(hello);
  EXPECT_EQ(SessionOf(child)["job"], hello.job.terms.number);
  EXPECT_EQ(SessionOf(child)["memory_limit_bytes"], kLimit);
}

TEST_F(HelloTest, ARunWithinAJobIsAPartOfItAndMayChangeIt) {
  const std::unique_ptr<Program> daemon = installation_.StartDaemon();
  ipc::Hello hello;
  hello.job = NewJob(kLimit);
  const Connection child = Say(hello);
  const ipc::JobTicket same = NewJob(0, ipc::TextOf(hello.job));
  EXPECT_EQ(same.terms, hello.job.terms);
  const ipc::JobTicket changed = NewJob(2 * kLimit, ipc::TextOf(hello.job));
  EXPECT_EQ(changed.terms.number, hello.job.terms.number);
  EXPECT_EQ(SessionOf(child)["memory_limit_bytes"], 2 * kLimit);
  EXPECT_EQ(SessionOf(Say(hello))["memory_limit_bytes"], 2 * kLimit)
      << "an older ticket is of the job as it is now";
}

// --- those who say nothing -----------------------------------------------------------------------

TEST_F(HelloTest, ConnectionsWithoutAHelloAreFewAndDelayNobody) {
  const std::unique_ptr<Program> daemon = installation_.StartDaemon();
  std::vector<ipc::UniqueFd> idle;
  for (int i = 0; i < 1000; ++i) {
    absl::StatusOr<ipc::UniqueFd> socket =
        ipc::ConnectTo(ipc::HelloSocketPath(installation_.dir()));
    ASSERT_TRUE(socket.ok()) << i << ": " << socket.status();
    idle.push_back(std::move(*socket));
  }
  EXPECT_EQ(SessionOf(Say(ipc::Hello()))["program"], "liar");
  size_t descriptors = 0;
  const std::string listing = "/proc/" + std::to_string(daemon->pid()) + "/fd";
  for (const auto& entry : std::filesystem::directory_iterator(listing)) {
    (void)entry;
    ++descriptors;
  }
  EXPECT_LT(descriptors, 300u);
}

// --- a worker that cannot serve one more ---------------------------------------------------------

// While it lives, the process can map no stack for another thread.
class NoThreads {
 public:
  explicit NoThreads(pid_t pid) : pid_(pid) {
    uint64_t pages = 0;
    std::ifstream("/proc/" + std::to_string(pid) + "/statm") >> pages;
    const rlimit none{pages * static_cast<uint64_t>(getpagesize()) + (uint64_t{1} << 20),
                      RLIM_INFINITY};
    EXPECT_EQ(prlimit(pid, RLIMIT_AS, &none, &before_), 0);
  }
  ~NoThreads() { prlimit(pid_, RLIMIT_AS, &before_, nullptr); }
  NoThreads(const NoThreads&) = delete;

 private:
  const pid_t pid_;
  rlimit before_{};
};

TEST_F(HelloTest, AWorkerWithoutAThreadRefusesTheSessionAndServesTheOthers) {
  const std::unique_ptr<Program> daemon = installation_.StartDaemon();
  const std::unique_ptr<Program> client = installation_.StartClient();
  EXPECT_EQ(client->ReadLine().rfind("open ", 0), 0u);
  EXPECT_EQ(client->ReadLine(), "ready");
  const std::vector<pid_t> workers = installation_.Processes("laneway-worker");
  ASSERT_EQ(workers.size(), 1u);
  {
    const NoThreads none(workers[0]);
    const std::unique_ptr<Program> refused = installation_.StartClient();
    EXPECT_EQ(refused->ReadLine().rfind("refused 304 the worker gets no thread", 0), 0u);
  }
  client->Write("ping");
  EXPECT_EQ(client->ReadLine(), "pong");
  const std::unique_ptr<Program> next = installation_.StartClient();
  EXPECT_EQ(next->ReadLine().rfind("open ", 0), 0u);
  EXPECT_EQ(installation_.Processes("laneway-worker"), workers);
}

TEST_F(HelloTest, NothingInTheRuntimeDirectoryIsOpenToOthers) {
  const mode_t before = umask(0);  // the daemon does not depend on its user's
  const std::unique_ptr<Program> daemon = installation_.StartDaemon();
  umask(before);
  const std::unique_ptr<Program> client = installation_.StartClient(1, "zmq");
  EXPECT_EQ(client->ReadLine().rfind("open ", 0), 0u);
  std::map<std::string, std::filesystem::perms> modes;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(installation_.dir()))
    modes[entry.path().filename()] = entry.symlink_status().permissions();
  for (const char* const name :
       {"secret", "control.zmq", "lanewayd.sock", "keeper.sock", "worker-1.sock", "session-1.zmq",
        "lanewayd.lock", "lanewayd.log", "keeper.log", "worker-1.log"}) {
    EXPECT_EQ(modes.count(name), 1u) << name;
  }
  constexpr std::filesystem::perms kOthers =
      std::filesystem::perms::group_all | std::filesystem::perms::others_all;
  for (const auto& [name, mode] : modes)
    EXPECT_EQ(mode & kOthers, std::filesystem::perms::none) << name;
}

}  // namespace
}  // namespace control
