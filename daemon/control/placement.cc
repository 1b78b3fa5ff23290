#include "daemon/control/placement.h"

#include "daemon/control/session_link.h"
#include "ipc/session_file.h"
#include "ipc/socket.h"

namespace control {
namespace {

// The workers that have a session, or are to get one.
std::set<uint32_t> UsedWorkers(const SessionTable& sessions) {
  std::set<uint32_t> used;
  for (const std::pair<const uint64_t, Session>& entry : sessions.all()) {
    if (entry.second.phase == Phase::kLost) continue;
    used.insert(entry.second.worker);
    used.insert(entry.second.own_worker);
  }
  return used;
}

}  // namespace

std::string ObstacleOf(const Session& session) {
  if (session.link->KeepsOwnContext()) return "in-process: the context is the program's own";
  if (session.record.transport != ipc::Transport::kRing) return "its calls travel over ZeroMQ";
  if (session.page.get() == nullptr) return "it has no session yet";
  const uint32_t obstacles = session.page->obstacles.load(std::memory_order_relaxed);
  if ((obstacles & ipc::kModuleState) != 0)
    return "a module of it has device variables, a heap or function pointers";
  if ((obstacles & ipc::kUnknownImage) != 0) return "a module of it cannot be looked into";
  if ((obstacles & ipc::kWrittenVariable) != 0)
    return "it copied into a module's variable from device memory";
  if ((obstacles & ipc::kCapturedLibrary) != 0)
    return "a graph of it has calls of cuBLAS, made with settings that are gone";
  if ((obstacles & ipc::kArrays) != 0) return "it has arrays, textures or surfaces";
  if ((obstacles & ipc::kSharedMemory) != 0) return "it shares memory with other programs";
  if ((obstacles & ipc::kLogTooLong) != 0) return "it has more objects than a rebuild can hold";
  return {};
}

bool HasWorkInFlight(const Session& session) {
  const ipc::SessionPage* const page = session.page.get();
  if (page == nullptr) return false;
  const bool replays = session.record.generation != 0 &&  // else it never has moved
                       page->replaying.load(std::memory_order_seq_cst) != 0;
  return !replays && page->quiet_position.load(std::memory_order_seq_cst) !=
                         page->to_worker.tail.load(std::memory_order_seq_cst);
}

const Worker* WorkerFor(const Session& session, const Children& children) {
  return session.record.contained != 0 ? children.Ready(session.own_worker) : children.Current();
}

bool CanMove(const Session& session) {
  return ObstacleOf(session).empty() && !HasWorkInFlight(session) && !session.faulted &&
         session.page->loss.load() == 0 && !ipc::ProcessEnded(session.fds.process.get()) &&
         session.moves_failed < Placement::kMovesFailedMax;
}

bool Placement::IsQuarantined(uint32_t user, const std::string& program) const {
  const std::map<std::pair<uint32_t, std::string>, int>::const_iterator found =
      offences_.find({user, program});
  return found != offences_.end() && found->second >= kOffencesMax;
}

std::vector<uint32_t> UnusedWorkers(const std::map<uint32_t, Worker>& workers,
                                    const SessionTable& sessions, const std::set<uint32_t>& held) {
  const std::set<uint32_t> used = UsedWorkers(sessions);
  std::vector<uint32_t> unused;
  for (const std::pair<const uint32_t, Worker>& entry : workers) {
    const Worker& worker = entry.second;
    if (worker.state == WorkerState::kRetired) continue;
    const bool takes_more = !worker.own && worker.TakesSessions();
    const bool kept = used.count(entry.first) != 0 || held.count(entry.first) != 0;
    if (!takes_more && !kept) unused.push_back(entry.first);
  }
  return unused;
}

}  // namespace control
