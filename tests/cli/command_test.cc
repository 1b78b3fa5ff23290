// `laneway` with real processes: exit codes, sentences, signals, starting and stopping the daemon.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "tests/daemon/processes.h"

namespace control {
namespace {

struct Result {
  int code;
  std::string out, err;
};

size_t ThreadsOf(pid_t pid) {
  size_t threads = 0;
  std::error_code error;  // it has ended
  for ([[maybe_unused]] const std::filesystem::directory_entry& entry :
       std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/task", error)) {
    ++threads;
  }
  return threads;
}

class CommandTest : public ::testing::Test {
 protected:
  std::unique_ptr<Program> Start(const std::vector<std::string>& words) {
    std::vector<std::string> command = {installation_.Binary("laneway")};
    command.insert(command.end(), words.begin(), words.end());
    return std::make_unique<Program>(command, installation_.environment());
  }
  Result Run(const std::vector<std::string>& words) {
    const std::unique_ptr<Program> program = Start(words);
    program->CloseInput();
    const std::string out = program->ReadAll();
    const int code = program->Wait();
    return {code, out, program->Errors()};
  }
  Result RunShell(const std::string& script) {
    return Run({"run", "--device=soft", "--", "/bin/sh", "-c", script});
  }
  // One sentence on standard error that names `word`, and nothing started.
  void ExpectRefused(const std::vector<std::string>& words, int code, const std::string& word) {
    const Result result = Run(words);
    EXPECT_EQ(result.code, code) << result.err;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    EXPECT_NE(result.err.find(word), std::string::npos) << result.err;
    EXPECT_EQ(result.out, "");
    EXPECT_TRUE(installation_.Processes().empty());
  }

  Installation installation_;
};

TEST_F(CommandTest, RunPassesTheProgramsCodeOn) {
  EXPECT_EQ(RunShell("exit 0").code, 0);
  EXPECT_EQ(RunShell("exit 7").code, 7);
  EXPECT_EQ(RunShell("exit 255").code, 255);
  EXPECT_EQ(RunShell("kill -9 $$").code, 128 + 9);
  EXPECT_EQ(RunShell("kill -15 $$").code, 128 + 15);
  EXPECT_EQ(installation_.Processes("lanewayd").size(), 1u);
}

TEST_F(CommandTest, RunPreloadsTheClientAndNamesTheJob) {
  const Result result =
      RunShell("echo $LD_PRELOAD; echo $LD_LIBRARY_PATH; echo $LANEWAY_JOB $LANEWAY_TRANSPORT");
  for (const char* const word :
       {"shim/liblaneway_client.so\n", "lib/laneway/shim:", "lib/laneway/runtime:",
        "lib/laneway/softgpu/compilers\n", "\n1-", " ring\n"}) {
    EXPECT_NE(result.out.find(word), std::string::npos) << result.out;
  }
  EXPECT_EQ(result.err, "");
  const std::string nested =
      installation_.Binary("laneway") + " run -- /bin/sh -c 'echo $LANEWAY_JOB $LD_PRELOAD'";
  const std::string out = RunShell(nested).out;
  EXPECT_EQ(out.rfind("2-", 0), 0u) << out;  // a part of the outer job
  EXPECT_EQ(out.find("liblaneway_client"), out.rfind("liblaneway_client")) << out;
}

TEST_F(CommandTest, TheSoftwareGpuAloneBringsItsAssembler) {
  const std::string script =
      "echo $TRITON_PTXAS_PATH; echo $TRITON_PTXAS_BLACKWELL_PATH; echo ${PATH%%:*}";
  const std::string tools = LANEWAY_TEST_INSTALL "/lib/laneway/softgpu/bin";
  EXPECT_EQ(RunShell(script).out, tools + "/ptxas\n" + tools + "/ptxas\n" + tools + "\n");
  const Result without = Run({"run", "--no-env", "--", "/bin/sh", "-c", script});
  EXPECT_EQ(without.out.find("laneway/softgpu"), std::string::npos) << without.out;
  EXPECT_EQ(without.out.substr(0, 2), "\n\n");
  EXPECT_EQ(Run({"stop"}).code, 0);
  // A driver found as the vendor's is: the device is a GPU, as far as anybody can tell.
  const std::string vendor = installation_.dir() + ".vendor";
  std::filesystem::create_directory(vendor);
  std::filesystem::create_symlink(LANEWAY_TEST_INSTALL "/lib/laneway/softgpu/libcuda.so.1",
                                  vendor + "/libcuda.so.1");
  installation_.environment()["LD_LIBRARY_PATH"] = vendor;
  const Result gpu = Run({"run", "--device=cuda", "--", "/bin/sh", "-c", script});
  EXPECT_EQ(gpu.code, 0) << gpu.err;
  EXPECT_EQ(gpu.out.find("laneway/softgpu"), std::string::npos) << gpu.out;
  EXPECT_EQ(gpu.out.substr(0, 2), "\n\n");
  std::filesystem::remove_all(vendor);
}

TEST_F(CommandTest, AReplayedJobHasEachTemporaryInBytesOfItsOwn) {
  const auto planner = [this](std::vector<std::string> flags) {
    flags.insert(flags.begin(), "run");
    flags.insert(flags.end(), {"--", "/bin/sh", "-c", "echo ${NO_MEMORY_PLANNER-unset}"});
    return Run(flags).out;
  };
  EXPECT_EQ(planner({}), "unset\n");
  EXPECT_EQ(planner({"--replay=auto"}), "1\n");
  EXPECT_EQ(planner({"--replay=auto", "--no-env"}), "unset\n");
  installation_.environment()["NO_MEMORY_PLANNER"] = "0";
  EXPECT_EQ(planner({"--replay=auto"}), "0\n");
}

TEST_F(CommandTest, WhatCanNotRunIsToldBeforeAnythingStarts) {
  const std::string script = installation_.dir() + ".script";
  std::ofstream(script) << "#!/bin/sh\n";
  ExpectRefused({"run", "--", "no-such-program-anywhere"}, 127, "no-such-program-anywhere");
  ExpectRefused({"run", "--", "/no/such/program"}, 127, "/no/such/program");
  ExpectRefused({"run", "--", script}, 126, script);
  ExpectRefused({"run", "--", "/tmp"}, 126, "/tmp");
  std::filesystem::remove(script);
}

TEST_F(CommandTest, WrongUsageIsOneSentence) {
  ExpectRefused({"status", "--no-such-flag"}, 2, "--no-such-flag");
  ExpectRefused({"no-such-command"}, 2, "no-such-command");
  ExpectRefused({"run", "--transport=pigeon", "--", "/bin/true"}, 125, "pigeon");
  ExpectRefused({"run", "--mode=private", "--", "/bin/true"}, 125, "shared");
  ExpectRefused({"run", "--bogus", "--", "/bin/true"}, 125, "--bogus");
  ExpectRefused({"run"}, 125, "--");
  ExpectRefused({}, 2, "--help");
}

TEST_F(CommandTest, ABadConfigurationIsNamed) {
  const std::string dir = installation_.environment()["XDG_CONFIG_HOME"] + "/laneway";
  std::filesystem::create_directories(dir);
  std::ofstream(dir + "/config.toml") << "no-such-key = 1\n";
  ExpectRefused({"run", "--", "/bin/true"}, 125, "config.toml");
  ExpectRefused({"status"}, 2, "no-such-key");
}

TEST_F(CommandTest, ADirectoryThatOthersEnterIsRefused) {
  std::filesystem::create_directory(installation_.dir());
  chmod(installation_.dir().c_str(), 0777);
  ExpectRefused({"run", "--", "/bin/true"}, 125, installation_.dir());
  ExpectRefused({"status"}, 1, installation_.dir());
}

TEST_F(CommandTest, StatusWithoutADaemonStartsNone) {
  ExpectRefused({"status"}, 1, "no daemon");
  EXPECT_EQ(Run({"stop"}).code, 0);
  EXPECT_TRUE(installation_.Processes().empty());
}

TEST_F(CommandTest, ManyRunsAtOnceStartOneDaemon) {
  std::vector<std::unique_ptr<Program>> programs;
  for (int i = 0; i < 8; ++i)
    programs.push_back(Start({"run", "--device=soft", "--", "/bin/true"}));
  for (const std::unique_ptr<Program>& program : programs)
    EXPECT_EQ(program->Wait(), 0) << program->Errors();
  // Those that came second may still be on their way out.
  EXPECT_TRUE(WaitFor([this] { return installation_.Processes("lanewayd").size() == 1; }));
}

TEST_F(CommandTest, AnotherDeviceThanTheDaemonsIsRefused) {
  EXPECT_EQ(RunShell("true").code, 0);
  const Result result = Run({"run", "--device=cuda", "--", "/bin/true"});
  EXPECT_EQ(result.code, 125);
  EXPECT_NE(result.err.find("laneway stop"), std::string::npos) << result.err;
  EXPECT_EQ(Run({"run", "--", "/bin/true"}).code, 0);
}

// A GPU's driver may take seconds to start.
TEST_F(CommandTest, WhoAsksADaemonThatStartsIsToldHowItStarted) {
  const std::string hold = installation_.dir() + ".hold";
  std::ofstream(hold) << "";
  installation_.environment()["LANEWAY_FAKE_HOLD"] = hold;
  installation_.environment()["LANEWAY_FAKE_NO_DEVICE"] = "1";
  const std::vector<std::string> words = {"run", "--device=soft", "--", "/bin/true"};
  const std::unique_ptr<Program> first = Start(words);
  EXPECT_TRUE(WaitFor([this] { return !installation_.Processes("laneway-keeper").empty(); }));
  const std::unique_ptr<Program> second = Start(words);
  // It has made its connection to the one that starts: a thread of ZeroMQ's.
  EXPECT_TRUE(WaitFor([&second] { return ThreadsOf(second->pid()) > 1; }));
  std::filesystem::remove(hold);
  for (Program* const program : {first.get(), second.get()}) {
    EXPECT_EQ(program->Wait(), 125);
    EXPECT_NE(program->Errors().find("cuInit"), std::string::npos);
  }
}

TEST_F(CommandTest, ASignalReachesTheProgram) {
  const std::unique_ptr<Program> program =
      Start({"run", "--device=soft", "--", "/bin/sh", "-c",
             // wait, not read: a shell looks for signals once more before it sleeps in wait
             "trap 'echo caught; kill $!; exit 3' TERM; sleep 60 & echo here; wait"});
  EXPECT_EQ(program->ReadLine(), "here");
  program->Signal(SIGTERM);
  EXPECT_EQ(program->ReadLine(), "caught");
  EXPECT_EQ(program->Wait(), 3);
}

// Many read their data for minutes before their first CUDA call.
TEST_F(CommandTest, TheDaemonStaysForAProgramThatHasNotUsedItYet) {
  const std::unique_ptr<Program> program =
      Start({"run", "--device=soft", "--linger=1", "--log-level=debug", "--", "/bin/sh", "-c",
             "echo here; read line; exec " + installation_.Binary("laneway") + " ps"});
  EXPECT_EQ(program->ReadLine(), "here");
  EXPECT_TRUE(WaitFor(
      [this] { return installation_.Log("lanewayd").find("stays: ") != std::string::npos; }));
  program->CloseInput();
  EXPECT_EQ(program->Wait(), 0) << program->Errors();
  EXPECT_TRUE(WaitFor([this] { return installation_.Processes().empty(); }));
}

TEST_F(CommandTest, StatusPsAndStop) {
  EXPECT_EQ(RunShell("true").code, 0);
  const std::unique_ptr<Program> client = installation_.StartClient();
  EXPECT_EQ(client->ReadLine().rfind("open ", 0), 0u);
  EXPECT_EQ(Run({"status", "--json"}).out, Run({"status", "--json"}).out);
  EXPECT_NE(Run({"status"}).out.find("fake_client"), std::string::npos);
  EXPECT_NE(Run({"ps"}).out.find(std::to_string(client->pid())), std::string::npos);
  const Result refused = Run({"stop"});
  EXPECT_EQ(refused.code, 1);
  EXPECT_NE(refused.err.find("--force"), std::string::npos);
  EXPECT_EQ(Run({"stop", "--force"}).code, 0);
  EXPECT_TRUE(installation_.Processes().empty());
  EXPECT_TRUE(installation_.Sockets().empty());
}

TEST_F(CommandTest, ALostDaemonIsReplacedByWhoeverAsks) {
  EXPECT_EQ(RunShell("true").code, 0);
  const std::unique_ptr<Program> client = installation_.StartClient();
  EXPECT_EQ(client->ReadLine().rfind("open ", 0), 0u);
  const pid_t daemon = installation_.Processes("lanewayd").at(0);
  kill(daemon, SIGKILL);
  EXPECT_TRUE(WaitFor([daemon] { return !Alive(daemon); }));
  const Result table = Run({"ps"});
  EXPECT_EQ(table.code, 0) << table.err;
  EXPECT_NE(table.out.find(std::to_string(client->pid())), std::string::npos) << table.out;
}

TEST_F(CommandTest, DoctorCallsVersionAndManual) {
  const Result doctor = Run({"doctor"});
  EXPECT_EQ(doctor.code, 1);  // this installation has no cuBLAS
  EXPECT_NE(doctor.out.find("->"), std::string::npos);
  EXPECT_NE(doctor.out.find(" LRU=0 "), std::string::npos) << doctor.out;
  EXPECT_NE(doctor.out.find("--replay also sets NO_MEMORY_PLANNER=1"), std::string::npos);
  EXPECT_NE(Run({"calls", "cuMemAlloc"}).out.find("cuMemAlloc_v2"), std::string::npos);
  EXPECT_EQ(Run({"version"}).out.rfind("laneway ", 0), 0u);
  EXPECT_EQ(Run({"--version"}).out.rfind("laneway ", 0), 0u);
  EXPECT_EQ(Run({"man"}).out.rfind(".TH LANEWAY", 0), 0u);
}

}  // namespace
}  // namespace control
