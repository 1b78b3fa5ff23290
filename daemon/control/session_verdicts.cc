#include "daemon/control/session_verdicts.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ipc/client_words.h"
#include "ipc/session_file.h"
#include "ipc/state_dir.h"
#include "ipc/verdict_area.h"

namespace control {
namespace {

constexpr char kVerdictsName[] = "replay_verdicts";

uint32_t ToldBy(const Session& session) {
  if (session.page.get() == nullptr) return 0;
  return ipc::ClientWordsOf(session.page.get())->verdicts_told.load(std::memory_order_acquire);
}

template <class T>
bool WriteAt(int fd, size_t offset, const T* values, size_t count) {
  const size_t bytes = count * sizeof(T);
  return pwrite(fd, values, bytes, static_cast<off_t>(offset)) == static_cast<ssize_t>(bytes);
}

}  // namespace

SessionVerdicts::SessionVerdicts(const std::string& state_dir)
    : path_(state_dir.empty() ? "" : absl::StrCat(state_dir, "/", kVerdictsName)) {
  if (!path_.empty()) (void)ReadFile(&verdicts_);
}

// --- sessions ------------------------------------------------------------------------------------

// The count goes last: a client that can't be told all is told nothing.
void SessionVerdicts::Give(const Session& session) const {
  const std::vector<ipc::ReplayVerdict> verdicts = verdicts_.InForce();
  const uint64_t count = verdicts.size();
  const int fd = session.fds.file.get();
  constexpr size_t kAt = ipc::kVerdictOffset;
  if (WriteAt(fd, kAt + offsetof(ipc::VerdictArea, known), verdicts.data(), verdicts.size()))
    (void)WriteAt(fd, kAt + offsetof(ipc::VerdictArea, known_count), &count, 1);
}

void SessionVerdicts::Begin(const Session& session) {
  seen_[session.record.session_id] = ToldBy(session);
}

void SessionVerdicts::Read(const Session& session, int64_t now_s) {
  const std::map<uint64_t, uint32_t>::iterator seen = seen_.find(session.record.session_id);
  if (seen == seen_.end()) return;
  const uint32_t told = ToldBy(session);
  const uint32_t fresh = std::min(told - seen->second, ipc::VerdictArea::kTold);
  for (uint32_t number = told - fresh; number != told; ++number)
    TakeUntrusted(session, number, now_s);
  seen->second = told;
}

// Whatever the client has written there, one entry of it is copied and then looked at.
void SessionVerdicts::TakeUntrusted(const Session& session, uint32_t number, int64_t now_s) {
  ipc::ToldVerdict told;
  const size_t at = ipc::kVerdictOffset + offsetof(ipc::VerdictArea, told) +
                    number % ipc::VerdictArea::kTold * sizeof told;
  const ssize_t got = pread(session.fds.file.get(), &told, sizeof told, static_cast<off_t>(at));
  if (got != static_cast<ssize_t>(sizeof told) || !ipc::IsSound(told.verdict)) return;
  if (told.kind == ipc::ToldVerdict::kMeasured) {
    verdicts_.Measured(told.verdict, now_s);
  } else if (told.kind == ipc::ToldVerdict::kTaken) {
    verdicts_.Taken(told.verdict, now_s);
  } else {
    return;
  }
  unsaved_ = true;
}

void SessionVerdicts::End(const Session& session) { seen_.erase(session.record.session_id); }

// --- the file ------------------------------------------------------------------------------------

// An error: the file is not to be replaced.
absl::Status SessionVerdicts::ReadFile(ReplayVerdicts* read) {
  const absl::StatusOr<std::string> file = ipc::ReadOwn(path_, ReplayVerdicts::kFileBytesMax);
  if (absl::IsNotFound(file.status())) return absl::OkStatus();
  if (!file.ok() && !absl::IsResourceExhausted(file.status())) {
    Say(absl::StrCat(std::string(file.status().message()),
                     "; what replay gains is remembered until lanewayd ends, and not longer"));
    return file.status();
  }
  absl::StatusOr<ReplayVerdicts> decoded = file.ok() ? ReplayVerdicts::DecodeUntrusted(*file)
                                                     : absl::InvalidArgumentError("is too long");
  if (decoded.ok()) {
    *read = *std::move(decoded);
  } else {
    Say(absl::StrCat(path_, " ", std::string(decoded.status().message()),
                     "; programs measure anew what replay gains, and the file is replaced"));
  }
  return absl::OkStatus();
}

void SessionVerdicts::Save() {
  if (!unsaved_ || path_.empty()) return;
  ReplayVerdicts theirs;
  unsaved_ = false;
  if (!ReadFile(&theirs).ok()) return;
  verdicts_.Merge(theirs);
  const absl::Status written = ipc::WriteWhole(path_, verdicts_.Encode());
  unsaved_ = !written.ok();
  if (!written.ok())
    Say(absl::StrCat(std::string(written.message()), "; what replay gains is not remembered"));
}

void SessionVerdicts::Say(const std::string& sentence) {
  if (sentence != said_) spdlog::warn("{}", sentence);
  said_ = sentence;
}

}  // namespace control
