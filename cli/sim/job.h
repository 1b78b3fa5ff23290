// A job as a simulation knows it: what a program would do, told in advance. What of it the
// scheduler may know is the simulation's choice (engine.h: Knowledge). Thread safety: values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sim {

struct Job {
  std::string name;
  std::string command;  // what durations are learned by; empty: the name
  std::string user;
  double arrival_s = 0;
  int64_t iterations = 1;
  double iteration_ms = 0;    // alone on the device
  double busy_percent = 100;  // of an iteration: computing on the device; the rest is host time
  // How much longer its device time takes for each other lane that computes at the same time,
  // beyond the fair division of the device: caches and memory bandwidth fought over.
  double interference_percent = 0;
  double persistent_mib = 0;
  double ephemeral_mib = 0;
  int64_t priority = 1;             // class, 0 is the most urgent
  int64_t weight = 100;             // within its user's share
  double deadline_ms = 0;           // of each iteration, from when it is asked for; 0: none
  int64_t declared_iterations = 0;  // what the user says; 0: nothing
  double request_ms = 0;            // mean time between requests for one iteration each; 0: a loop

  double AloneSeconds() const { return static_cast<double>(iterations) * iteration_ms / 1e3; }
  const std::string& Key() const { return command.empty() ? name : command; }
};

}  // namespace sim
