// The protocol of lanewayd, workers and keeper in one thread and in virtual time: the real
// lanewayd (control::Daemon), boards, gates, lane tables and keeper's books, with models of the
// sessions' threads and of the processes around them. All order, delay, loss and death come from
// one seed.
//
// After each step: at most one session uses a lane. Where a kernel runs, its gate is open, its
// memory is there, and what lives in its lane is as it left it. A lanewayd that begins to serve
// counts at least the lane memory that the keeper has. At rest (Rest): every program that may run
// has run, nothing is under way, and scheduler, workers and keeper agree about who holds each lane
// and about every byte. When all programs have ended (Finish), nothing is left of them anywhere.
// Thread safety: one world at a time in a process.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/protocol/sim_daemon.h"
#include "tests/protocol/sim_in_process.h"
#include "tests/protocol/sim_memory.h"
#include "tests/protocol/sim_worker.h"

namespace protocol {

class World {
 public:
  World(uint64_t seed, const Disturbances& disturbances, bool verbose = false);
  ~World();
  World(const World&) = delete;

  void Step(uint64_t word);
  // No program does anything more but end its iteration; what was begun ends.
  void Rest();
  void Finish();
  // The first promise that was broken; empty: none.
  const std::string& failure() const { return scene_.failure; }
  std::string Describe() const;

 private:
  void StepProcesses(uint64_t choice);
  void StepPrograms();
  void Disturb();
  void Arrive();
  void StepInProcess(SimInProcess* program);
  void BeginIteration(Program* program);
  void Call(Program* program);
  void EndIterations();
  void LoseUnknown();
  void ForgetEnded();
  void StartDaemon();
  void LoopDaemon();
  void KillDaemon();
  void KillWorker(uint32_t number);
  void RemoveStopped();
  std::shared_ptr<Connection> StartWorker(bool own, uint32_t* number);
  SimWorker* AnyWorker();
  Program* AnyProgram();
  bool Settle();                                // until nothing changes; false: it goes on for ever
  bool IsServed(const Program& program) const;  // by a worker
  bool IsSpokenOf(const Program& program) const;  // in a message that is not heard yet
  bool Served(const Program& program) const;

  // --- world_checks.cc
  bool MayWait() const;
  bool WaitsForInProcess(const Program& program) const;
  void CheckLanes();
  void CheckRest();
  void CheckMemory();
  void CheckHolders();
  void CheckCounted();
  void CheckInProcess();
  void CheckNothingIsLeft();
  std::string DescribeDaemon() const;
  uint64_t KeptFor(const ipc::control::Owner& owner) const;
  bool IsOverbooked() const;

  Scene scene_;
  const Disturbances disturbances_;
  SimDaemon::Settings settings_;
  SimDevice device_;
  SimKeeper keeper_;
  std::map<uint64_t, uint64_t> tags_;
  std::map<uint32_t, std::unique_ptr<SimWorker>> workers_;
  std::unique_ptr<SimDaemon> daemon_;
  uint64_t daemons_ = 0;  // that were started
  std::vector<std::unique_ptr<Program>> programs_;
  std::map<pid_t, std::unique_ptr<SimInProcess>> in_process_;  // of these
  pid_t next_pid_;
  uint32_t next_worker_ = 1;
};

}  // namespace protocol
