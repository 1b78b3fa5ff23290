#include "tests/protocol/world.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace protocol {
namespace {

constexpr size_t kProgramsMax = 7;
constexpr size_t kRingMax = 6;
constexpr uint64_t kPersistentUnitsMax = 12;
constexpr uint64_t kLaneUnitsMax = 6;
constexpr int kStillRounds = 4;
constexpr int kRoundsMax = 20'000;
constexpr int kTimersMax = 3'000;
constexpr pid_t kFirstPid = 5'000'000;  // no process has it

constexpr const char* kPolicies[] = {"fifo", "srtf", "pack", "fair", "rr", "priority", "edf"};

uint64_t CapacityOf(uint64_t seed) {
  Dice dice(seed ^ 0xca9a);
  return (kPersistentUnitsMax + kLaneUnitsMax + 2 + dice.Below(30)) * kUnit;
}

}  // namespace

World::World(uint64_t seed, const Disturbances& disturbances, bool verbose)
    : disturbances_(disturbances),
      device_(CapacityOf(seed)),
      keeper_(&scene_, device_),
      next_pid_(kFirstPid) {
  clock_scene = &scene_;
  scene_.dice = Dice(seed);
  scene_.verbose = verbose;
  settings_.policy = kPolicies[scene_.dice.Below(std::size(kPolicies))];
  scheduler::Limits& limits = settings_.limits;
  limits.sessions_max = 16;
  limits.slice_us = 5'000;
  limits.swap_slice_us = 20'000;
  limits.starvation_us = 200'000;
  limits.iteration_max_us = 1'000'000;
  limits.lanes_max = static_cast<unsigned>(1 + scene_.dice.Below(4));
  limits.standstill_us = 50'000;
  StartDaemon();
}

World::~World() {
  daemon_.reset();
  workers_.clear();
}

// --- steps ---------------------------------------------------------------------------------------

void World::Step(uint64_t word) {
  scene_.dice = Dice(word);
  scene_.now_us += static_cast<int64_t>(scene_.dice.Below(2'000));
  const uint64_t choice = scene_.dice.Below(1'000);
  if (choice < 870) {
    StepProcesses(choice);
  } else if (choice < 990) {
    StepPrograms();
  } else {
    Disturb();
  }
  RemoveStopped();
  CheckLanes();
}

void World::StepProcesses(uint64_t choice) {
  if (!in_process_.empty() && choice < 400 && scene_.dice.OneIn(4)) {
    std::map<pid_t, std::unique_ptr<SimInProcess>>::iterator at = in_process_.begin();
    std::advance(at, scene_.dice.Below(in_process_.size()));
    return StepInProcess(at->second.get());
  }
  SimWorker* const worker = AnyWorker();
  if (choice < 300) {
    if (worker != nullptr) worker->StepSession();
  } else if (choice < 400) {
    if (worker != nullptr) worker->FinishDeviceWork();
  } else if (choice < 620) {
    if (worker != nullptr) worker->Loop();
  } else if (choice < 800) {
    if (daemon_ != nullptr) LoopDaemon();
  } else {
    keeper_.HearOne();
  }
}

void World::StepPrograms() {
  if (daemon_ == nullptr && scene_.dice.OneIn(8)) return StartDaemon();
  if (programs_.size() < kProgramsMax && scene_.dice.OneIn(15)) return Arrive();
  Program* const program = AnyProgram();
  if (program == nullptr) return Arrive();
  program->Hear();
  if (program->lost() || scene_.dice.OneIn(60)) {
    program->End();
    PROTOCOL_SAY(&scene_, "program %d ends", program->pid());
    return ForgetEnded();
  }
  Call(program);
}

void World::Disturb() {
  const uint64_t choice = scene_.dice.Below(12);
  SimWorker* const worker = AnyWorker();
  Program* const program = AnyProgram();
  if (choice == 0) {
    if (disturbances_.daemons && daemon_ != nullptr) KillDaemon();
  } else if (choice == 1) {
    // A lanewayd whose first worker does not start says so and ends.
    const bool starts = daemon_ != nullptr && !daemon_->ready();
    if (disturbances_.workers && worker != nullptr && !starts) KillWorker(worker->number());
  } else if (choice == 2) {
    if (!disturbances_.keepers || daemon_ == nullptr || !daemon_->serving()) return;
    PROTOCOL_SAY(&scene_, "the keeper is replaced");
    keeper_.Restart();
    daemon_->OnKeeperReplaced();
  } else if (choice < 5) {
    if (!disturbances_.upgrades || daemon_ == nullptr) return;
    PROTOCOL_SAY(&scene_, "upgrade");
    daemon_->Upgrade();
  } else if (disturbances_.pauses && daemon_ != nullptr && program != nullptr) {
    const auto pause = static_cast<scheduler::Pause>(choice < 8 ? 0 : scene_.dice.Below(3));
    const control::Session* const session = daemon_->SessionOf(*program);
    if (session == nullptr || daemon_->state().Find(session->record.session_id) == nullptr) return;
    PROTOCOL_SAY(&scene_, "program %d: pause %u", program->pid(), static_cast<unsigned>(pause));
    program->pause = pause;
    daemon_->Pause(*program, pause);
  }
}

// --- programs ------------------------------------------------------------------------------------

void World::Arrive() {
  if (daemon_ == nullptr) return;
  std::unique_ptr<Program> program = std::make_unique<Program>(next_pid_++);
  program->contained = scene_.dice.OneIn(4);
  program->stays = scene_.dice.OneIn(5);
  program->iterates = !scene_.dice.OneIn(4);
  program->in_process = disturbances_.in_process && scene_.dice.OneIn(3);
  scene_.programs[program->pid()] = program.get();
  PROTOCOL_SAY(&scene_, "program %d arrives", program->pid());
  if (program->in_process) {
    in_process_[program->pid()] = std::make_unique<SimInProcess>(&scene_, program.get());
  } else {
    daemon_->Hello(program.get(), program->HelloOf());
  }
  programs_.push_back(std::move(program));
}

void World::StepInProcess(SimInProcess* one) {
  if (one->seeks_daemon() && daemon_ != nullptr && (scene_.calm || scene_.dice.OneIn(2))) {
    daemon_->Hello(one->program(), one->Hello(daemons_));
  } else {
    one->Step();
  }
}

// A boundary is said before the first operation of the next iteration.
void World::BeginIteration(Program* program) {
  if (program->iterates) program->ring.push_back({Op::kBoundary});
  program->ring.push_back({Op::kWork});
}

void World::Call(Program* program) {
  std::deque<Op>& ring = program->ring;
  if (ring.size() >= kRingMax || (!ring.empty() && ring.back().WaitsForAnswer())) return;
  const uint64_t choice = scene_.dice.Below(20);
  if (choice < 9) {
    const bool blocks = program->lane_asked != 0 && scene_.dice.OneIn(2);
    ring.push_back({Op::kWork, 0, blocks, program->blocks});
    program->blocks = program->blocks || blocks;
  } else if (choice < 14 || (choice < 16 && (program->blocks || program->in_process))) {
    program->blocks = false;
    BeginIteration(program);
  } else if (choice < 16) {
    if (program->iterates) ring.push_back({Op::kBoundary});  // a lane changes between iterations
    const bool back = program->lane_asked != 0 && scene_.dice.OneIn(3);
    const uint64_t units =
        back ? 0 : std::max(program->lane_asked, 1 + scene_.dice.Below(kLaneUnitsMax));
    program->lane_asked = units;
    ring.push_back({back ? Op::kLaneBack : Op::kLane, units});
  } else if (choice < 18) {
    const uint64_t units = uint64_t{1} << scene_.dice.Below(3);
    if (program->persistent_units + units <= kPersistentUnitsMax)
      ring.push_back({Op::kAllocate, units, false, program->blocks});
  } else if (choice < 19) {
    ring.push_back({Op::kFree, 0, false, program->blocks});
  }
}

void World::EndIterations() {
  for (const std::unique_ptr<Program>& program : programs_) {
    program->blocks = false;
    BeginIteration(program.get());
  }
}

bool World::IsServed(const Program& program) const {
  for (const std::pair<const uint32_t, std::unique_ptr<SimWorker>>& entry : workers_) {
    for (const auto& served : entry.second->sessions()) {
      if (served.second->program() == &program) return true;
    }
  }
  return false;
}

bool World::IsSpokenOf(const Program& program) const {
  return std::any_of(workers_.begin(), workers_.end(), [&program](const auto& entry) {
    return entry.second->SpeaksOf(program.pid());
  });
}

// Sessions that went with a worker before this daemon heard of them.
void World::LoseUnknown() {
  if (daemon_ == nullptr || !daemon_->serving()) return;
  for (const std::unique_ptr<Program>& program : programs_) {
    const bool known = program->in_process || daemon_->SessionOf(*program) != nullptr;
    if (!known && !IsServed(*program)) program->End();
  }
}

// Of programs that have ended, once their sessions have.
void World::ForgetEnded() {
  if (daemon_ == nullptr) return;
  std::erase_if(programs_, [this](const std::unique_ptr<Program>& program) {
    if (program->alive() || daemon_->SessionOf(*program) != nullptr || IsServed(*program) ||
        IsSpokenOf(*program))
      return false;
    scene_.programs.erase(program->pid());
    in_process_.erase(program->pid());
    return true;
  });
}

// --- processes -----------------------------------------------------------------------------------

void World::StartDaemon() {
  PROTOCOL_SAY(&scene_, "a daemon starts");
  ++daemons_;
  daemon_ = std::make_unique<SimDaemon>(
      &scene_, &keeper_, settings_,
      [this](bool own, uint32_t* number) { return StartWorker(own, number); },
      [this](uint32_t number) { KillWorker(number); });
  for (const std::pair<const uint32_t, std::unique_ptr<SimWorker>>& entry : workers_) {
    std::shared_ptr<Connection> connection = std::make_shared<Connection>();
    entry.second->Connect(connection, false);
    daemon_->AdoptWorker(entry.first, std::move(connection));
  }
  daemon_->Start();
}

void World::LoopDaemon() {
  const bool served = daemon_->serving();
  daemon_->Loop();
  if (!served && daemon_->serving()) CheckCounted();
}

// A program that is between two workers, or has none yet, loses its session with the daemon. One
// in-process goes on, and says hello to the next daemon.
void World::KillDaemon() {
  PROTOCOL_SAY(&scene_, "the daemon dies");
  for (const std::unique_ptr<Program>& program : programs_) {
    const control::Session* const session = daemon_->SessionOf(*program);
    const bool served = session != nullptr && (session->phase == control::Phase::kRunning ||
                                               session->phase == control::Phase::kEnding);
    if (!served && !program->in_process) program->End();
  }
  daemon_.reset();
}

std::shared_ptr<Connection> World::StartWorker(bool own, uint32_t* number) {
  *number = next_worker_++;
  PROTOCOL_SAY(&scene_, "worker %u starts", *number);
  std::shared_ptr<Connection> connection = std::make_shared<Connection>();
  std::unique_ptr<SimWorker>& worker = workers_[*number];
  worker = std::make_unique<SimWorker>(&scene_, &keeper_, &device_, *number, own, &tags_);
  worker->Connect(connection, true);
  return connection;
}

void World::KillWorker(uint32_t number) {
  PROTOCOL_SAY(&scene_, "worker %u dies", number);
  const auto found = workers_.find(number);
  std::vector<Program*> served;
  for (const auto& entry : found->second->sessions()) served.push_back(entry.second->program());
  workers_.erase(found);
  if (daemon_ != nullptr) {
    daemon_->OnWorkerGone(number);
  } else {
    for (Program* const program : served) program->End();
  }
  scene_.Change();
}

void World::RemoveStopped() {
  for (const std::pair<const uint32_t, std::unique_ptr<SimWorker>>& entry : workers_) {
    if (entry.second->exits()) return KillWorker(entry.first);
  }
}

SimWorker* World::AnyWorker() {
  if (workers_.empty()) return nullptr;
  std::map<uint32_t, std::unique_ptr<SimWorker>>::iterator at = workers_.begin();
  std::advance(at, scene_.dice.Below(workers_.size()));
  return at->second.get();
}

Program* World::AnyProgram() {
  return programs_.empty() ? nullptr : programs_[scene_.dice.Below(programs_.size())].get();
}

// --- rest ----------------------------------------------------------------------------------------

bool World::Settle() {
  int still = 0;
  for (int round = 0; still < kStillRounds; ++round) {
    if (round == kRoundsMax || !scene_.failure.empty()) return false;
    const uint64_t before = scene_.changes;
    while (keeper_.HearOne()) {
    }
    for (const std::pair<const uint32_t, std::unique_ptr<SimWorker>>& entry : workers_) {
      entry.second->Loop();
      entry.second->StepAll();
    }
    for (const std::pair<const pid_t, std::unique_ptr<SimInProcess>>& entry : in_process_)
      StepInProcess(entry.second.get());
    LoopDaemon();
    RemoveStopped();
    LoseUnknown();
    ForgetEnded();
    CheckLanes();
    still = scene_.changes == before ? still + 1 : 0;
  }
  return true;
}

bool World::Served(const Program& program) const {
  if (!program.alive() || program.lost() || program.pause != scheduler::Pause::kNone) return true;
  return program.ring.empty();
}

void World::Rest() {
  scene_.calm = true;
  PROTOCOL_SAY(&scene_, "rest");
  if (daemon_ == nullptr) StartDaemon();
  EndIterations();
  for (int timers = 0; timers < kTimersMax; ++timers) {
    if (!Settle()) {
      if (!MayWait()) scene_.Fail("what was begun goes round for ever");
      break;
    }
    for (const std::unique_ptr<Program>& program : programs_) program->Hear();
    if (std::all_of(programs_.begin(), programs_.end(),
                    [this](const std::unique_ptr<Program>& program) { return Served(*program); }))
      break;
    const int64_t due_us = scheduler::NextTimerUs(daemon_->state());
    if (due_us >= scheduler::kUnlimited) break;
    scene_.now_us = std::max(scene_.now_us, due_us);
  }
  if (scene_.failure.empty()) CheckRest();
  scene_.calm = false;
}

void World::Finish() {
  for (const std::unique_ptr<Program>& program : programs_) program->End();
  Rest();
  if (scene_.failure.empty()) CheckNothingIsLeft();
}

}  // namespace protocol
