#include "ipc/calls/vendor.h"

#include "daemon/control/lifetime.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/control/hello_check.h"
#include "ipc/runtime_dir.h"
#include "ipc/session_file.h"

namespace control {
namespace {

constexpr char kStoppedEarly[] = "the daemon was stopped while it started";

}  // namespace

Lifetime::Lifetime(Core* core, OnReady on_ready, OnStop on_stop)
    : core_(core), on_ready_(std::move(on_ready)), on_stop_(std::move(on_stop)) {}

void Lifetime::OnFailure(const std::string& sentence) {
  spdlog::error("{}", sentence);
  if (!on_ready_) return;
  std::exchange(on_ready_, nullptr)(sentence);
  exit_code_ = 1;
  Stop(sentence);
}

void Lifetime::Reconcile() {
  if (on_ready_ && core_->children->Current() != nullptr) std::exchange(on_ready_, nullptr)("");
  UpdateLinger();
}

std::string Lifetime::StopUnlessUsed(bool force, size_t waiting) {
  const size_t alive = core_->sessions.CountAlive() + waiting;
  if (alive != 0 && !force) {
    return absl::StrCat(alive, alive == 1 ? " program is" : " programs are",
                        " still running (laneway ps); wait for them or use laneway stop --force");
  }
  spdlog::info("told to stop{}", force ? " (forced)" : "");
  Stop(kStoppedEarly);
  return {};
}

// The time counts from the last program on, whatever else happens meanwhile.
void Lifetime::UpdateLinger() {
  const bool run_ended =
      std::exchange(had_run_, core_->observers.history().HasPrograms()) && !had_run_;
  const bool idle = !core_->scheduler.stopped() && !core_->sessions.AnyAlive();
  if ((!idle || run_ended) && linger_timer_ != 0)
    core_->loop->Cancel(std::exchange(linger_timer_, 0));
  if (!idle || linger_timer_ != 0) return;
  linger_timer_ = core_->loop->After(core_->options.linger_s * 1'000'000, [this] {
    linger_timer_ = 0;
    if (core_->observers.history().HasPrograms()) {
      spdlog::debug("stays: a program of laneway run has not ended");
      return;  // and waits anew
    }
    spdlog::info("no program for {} s; stopping", core_->options.linger_s);
    Stop(kStoppedEarly);
  });
}

void Lifetime::Stop(const std::string& reason) {
  if (core_->scheduler.stopped()) return;
  core_->scheduler.Stop();
  on_stop_(reason);
  for (const std::pair<const uint64_t, Session>& entry : core_->sessions.all()) {
    if (entry.second.page.get() == nullptr) {
      TellRefused(entry.second, CUDA_ERROR_MPS_CONNECTION_FAILED, kStoppedWhileWaiting);
      continue;
    }
    ipc::MarkLost(entry.second.page.get(), CUDA_ERROR_MPS_RPC_FAILURE,
                  "Laneway was stopped while this program was running (laneway "
                  "stop --force)");
  }
  core_->children->Stop();
}

void Lifetime::OnTerminate(size_t waiting) {
  const size_t alive = core_->sessions.CountAlive() + waiting;
  if (alive == 0) return Stop(kStoppedEarly);
  spdlog::info(
      "told to end while {} program(s) run: they go on, the next "
      "daemon adopts them",
      alive);
  Quit();
}

void Lifetime::Quit() {
  core_->observers.Close(core_->scheduler.stopped());
  core_->loop->Quit();
}

void Lifetime::OnAllStopped() {
  unlink(ipc::HelloSocketPath(core_->options.runtime_dir).c_str());
  spdlog::info("stopped");
  Quit();
}

}  // namespace control
