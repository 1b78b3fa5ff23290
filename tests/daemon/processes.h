// Daemons and clients as processes, for tests that start, ask and kill them. Each Installation has
// a runtime directory of its own and ends what is left in it. Every wait has a bound.
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "ipc/unique_fd.h"
#include "tests/ipc/testing.h"

namespace control {

using Environment = std::map<std::string, std::string>;

// A program with pipes. Killed when it still runs at the end.
class Program {
 public:
  Program(const std::vector<std::string>& command, const Environment& environment);
  ~Program();

  pid_t pid() const { return pid_; }
  void Write(const std::string& line);
  // The next line of its standard output; empty after a long silence or at the end.
  std::string ReadLine();
  // Everything up to its end.
  std::string ReadAll();
  void CloseInput() { input_.Reset(); }
  void Signal(int number) const;
  // Its exit code, or -1 - signal.
  int Wait();
  // What it wrote to standard error. REQUIRES: it has ended.
  std::string Errors();

 private:
  pid_t pid_ = 0;
  ipc::UniqueFd input_, output_, errors_;
  std::string buffer_;
  bool waited_ = false;
  int code_ = 0;
};

class Installation {
 public:
  Installation();
  ~Installation();

  std::string Binary(const std::string& name) const;
  const std::string& dir() const { return runtime_; }
  Environment& environment() { return environment_; }

  // Starts lanewayd and waits until it serves. Its first line ("ready", or why not).
  std::unique_ptr<Program> StartDaemon(std::string* line,
                                       const std::vector<std::string>& flags = {});
  std::unique_ptr<Program> StartDaemon();
  std::unique_ptr<Program> StartClient(int sessions = 1, const std::string& transport = "ring");

  std::string StatusText();
  nlohmann::json Status() { return nlohmann::json::parse(StatusText()); }
  nlohmann::json Ask(const std::string& request);

  // Processes of this installation's runtime directory, by name.
  std::vector<pid_t> Processes(const std::string& name = "") const;
  // What it has logged so far.
  std::string Log(const std::string& process) const;
  // Socket files that are left in the runtime directory.
  std::vector<std::string> Sockets() const;

 private:
  const ipc::TemporaryDir root_;
  const std::string runtime_;
  Environment environment_;
};

// Polls until the condition holds; false after `seconds`.
bool WaitFor(const std::function<bool()>& condition, double seconds = 20);
// False for a zombie.
bool Alive(pid_t pid);

}  // namespace control
