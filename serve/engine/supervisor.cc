#include "serve/engine/supervisor.h"

#include <sys/socket.h>

#include <array>
#include <utility>

#include "absl/strings/str_cat.h"

namespace serve::engine {

Supervisor::~Supervisor() {
  if (timer_ != 0) loop_.CancelTimer(timer_);
}

void Supervisor::Start() {
  timer_ = 0;
  ended_ = 0;
  why_.clear();
  if (const absl::Status status = StartProcesses(); !status.ok()) {
    processes_.clear();
    client_.OnEngineLost(std::string(status.message()));
    return StartAgainLater();
  }
  client_.OnEngineStarted();
}

absl::Status Supervisor::StartProcesses() {
  Descriptor before;  // to the stage that has been started last
  for (size_t stage = 0; stage < stages_; ++stage) {
    std::vector<Descriptor> passed;
    if (before.valid()) passed.push_back(std::exchange(before, Descriptor()));
    if (stage + 1 < stages_) {
      absl::StatusOr<SocketPair> pair = SocketPair::Make(SOCK_SEQPACKET);
      if (!pair.ok()) return pair.status();
      passed.push_back(std::move(pair->ends[0]));
      before = std::move(pair->ends[1]);
    }
    absl::StatusOr<std::unique_ptr<EngineProcess>> process =
        EngineProcess::Start(&loop_, command_, passed, stage, this);
    if (!process.ok()) return process.status();
    processes_.push_back(*std::move(process));
  }
  return absl::OkStatus();
}

void Supervisor::StartAgainLater() {
  timer_ = loop_.AddTimer(loop_.NowUs() + backoff_.NextUs(), [this] { Start(); });
}

void Supervisor::Send(size_t stage, std::span<const std::byte> body) {
  if (stage < processes_.size()) processes_[stage]->Send(body);
}

void Supervisor::SendToAll(std::span<const std::byte> body) {
  for (const std::unique_ptr<EngineProcess>& process : processes_) process->Send(body);
}

std::vector<pid_t> Supervisor::pids() const {
  std::vector<pid_t> pids;
  for (const std::unique_ptr<EngineProcess>& process : processes_) pids.push_back(process->pid());
  return pids;
}

void Supervisor::GiveUp(const std::string& why) {
  if (why_.empty()) why_ = why;
  for (const std::unique_ptr<EngineProcess>& process : processes_) process->GiveUp();
}

void Supervisor::OnFrameUntrusted(size_t number, const Bytes& body) {
  client_.OnFrameUntrusted(number, body);
}

// A stage that computes nothing any more is of no use to the others. How it ends says why.
void Supervisor::OnSilent(size_t number, const std::string& why) {
  if (!why.empty()) return GiveUp(why);
  processes_[number]->GiveUp();
}

void Supervisor::OnEnded(size_t number, const std::string& how) {
  const std::string name =
      stages_ == 1 ? "the engine " : absl::StrCat("the engine's stage ", number + 1, " ");
  GiveUp(absl::StrCat(name, how));
  if (++ended_ < processes_.size()) return;
  processes_.clear();
  const std::string why = std::exchange(why_, "");
  StartAgainLater();
  client_.OnEngineLost(why);
}

}  // namespace serve::engine
