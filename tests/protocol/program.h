// A program of a simulated world, and the files that it shares with lanewayd and with whichever
// worker serves it: the real ones. No process is behind it: an eventfd stands for its pidfd.
// Thread safety: one thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "daemon/common/progress_map.h"
#include "daemon/common/session_page.h"
#include "ipc/hello.h"
#include "ipc/unique_fd.h"
#include "scheduler/place.h"

namespace protocol {

// One call of a program.
struct Op {
  enum Kind { kWork, kBoundary, kAllocate, kFree, kLane, kLaneBack };
  Kind kind = kWork;
  uint64_t units = 0;   // kAllocate, kLane
  bool blocks = false;  // kWork: afterwards something lives in the lane, until the boundary
  bool live = false;    // something lives there already
  bool WaitsForAnswer() const { return kind != kWork && kind != kBoundary; }
};

// A session's files, as lanewayd hands them to a worker with AttachSession.
class SessionFiles {
 public:
  SessionFiles() = default;
  // Keeps copies of what AttachSession brings (common::SessionFds).
  explicit SessionFiles(std::span<const int> fds);

  bool valid() const { return page_.get() != nullptr; }
  ipc::SessionPage& page() const { return *page_.get(); }
  ipc::Progress& progress() const { return *progress_.get(); }
  // The session's memory lies in its swap file.
  void SetOnHost(bool on_host) const;
  // For a worker's answer to Query.
  std::vector<ipc::UniqueFd> Copies() const;

 private:
  ipc::UniqueFd session_, pinned_, pidfd_, swap_;
  common::SessionPageMap page_;
  common::ProgressMap progress_;
};

// What lies in the swap file.
struct Swapped {
  bool held = false;
  bool with_lane = false;
  std::vector<std::pair<uint64_t, uint64_t>> ranges;  // address, bytes
};

class Program {
 public:
  explicit Program(pid_t pid);

  pid_t pid() const { return pid_; }
  bool alive() const { return alive_; }
  // It was refused, or its session is gone, and it knows.
  bool lost() const;
  ipc::Hello HelloOf() const;
  // For lanewayd, once: its end of the connection.
  ipc::UniqueFd Connect();
  ipc::UniqueFd Pidfd() const;
  void End();
  // Reads what lanewayd has said over the connection. A program in-process reads it by itself.
  void Hear();
  int connection() const { return connection_.get(); }
  void Refuse() { refused_ = true; }

  // A worker gets its session.
  void TakeFiles(std::span<const int> fds);
  const SessionFiles& files() const { return *files_; }
  // For a worker that outlives the next TakeFiles().
  const std::shared_ptr<const SessionFiles>& shared_files() const { return files_; }
  // The client has put its ring in order for its present worker.
  void Acknowledge();

  // --- calls that its worker has taken, and the calls of these that the device has completed
  void NoteTaken();
  void NoteQuiet();
  bool quiet() const;
  void SetOnHost(Swapped swapped);

  bool contained = false;
  bool in_process = false;
  bool stays = false;                                // no other worker can take it over
  bool iterates = true;                              // it has boundaries
  scheduler::Pause pause = scheduler::Pause::kNone;  // as a person asked for last
  std::deque<Op> ring;                               // calls that its worker has not completed
  bool blocks = false;            // something of it lives in its lane, by its own word
  uint64_t lane_units = 0;        // what it has asked of its lane
  uint64_t lane_asked = 0;        // the same, with what it asks for now
  uint64_t persistent_units = 0;  // what it was given
  uint64_t next_address = 0;      // offset of its next range
  const Swapped& swapped() const { return swapped_; }

 private:
  const pid_t pid_;
  ipc::UniqueFd ended_;
  ipc::UniqueFd connection_;
  std::shared_ptr<const SessionFiles> files_ = std::make_shared<const SessionFiles>();
  Swapped swapped_;
  bool alive_ = true;
  bool refused_ = false;
};

}  // namespace protocol
