#include "daemon/control/session_table.h"

#include <poll.h>

#include <algorithm>
#include <bitset>
#include <cassert>
#include <utility>

namespace control {
namespace {

// The event loop may report the end of a process only after the request that is being answered.
bool HasEnded(int pidfd) {
  pollfd ended{pidfd, POLLIN, 0};
  return pidfd >= 0 && poll(&ended, 1, 0) == 1 && (ended.revents & POLLIN) != 0;
}

bool IsAlive(const std::pair<const uint64_t, Session>& entry) {
  const Session& session = entry.second;
  return session.phase != Phase::kLost && session.phase != Phase::kEnding &&
         !HasEnded(session.fds.process.get());
}

}  // namespace

const char* NameOf(Phase phase) {
  switch (phase) {
    case Phase::kQueued:
      return "queued";
    case Phase::kWaiting:
      return "starting";
    case Phase::kAttaching:
      return "starting";
    case Phase::kRunning:
      return "running";
    case Phase::kMoving:
    case Phase::kEntering:
      return "moving";
    case Phase::kEnding:
      return "ending";
    case Phase::kLost:
      return "lost";
  }
  return "?";
}

Session* SessionTable::Add(ipc::control::SessionRecord record, SessionLink* link) {
  NoteUsed(record.session_id);
  Session& session = sessions_[record.session_id];
  session.record = record;
  session.link = link;
  return &session;
}

Session* SessionTable::Find(uint64_t id) {
  const std::map<uint64_t, Session>::iterator found = sessions_.find(id);
  return found == sessions_.end() ? nullptr : &found->second;
}

const Session* SessionTable::Find(uint64_t id) const {
  const std::map<uint64_t, Session>::const_iterator found = sessions_.find(id);
  return found == sessions_.end() ? nullptr : &found->second;
}

std::vector<uint64_t> SessionTable::Ids() const {
  std::vector<uint64_t> ids;
  for (const std::pair<const uint64_t, Session>& entry : sessions_) ids.push_back(entry.first);
  return ids;
}

void SessionTable::Remove(uint64_t id) { sessions_.erase(id); }

void SessionTable::TakeSlot(Session* session) {
  std::bitset<ipc::limits::kSlots> taken;
  for (const std::pair<const uint64_t, Session>& entry : sessions_) {
    if (entry.second.has_slot) taken.set(entry.second.record.slot);
  }
  uint32_t slot = 0;
  while (slot < taken.size() && taken.test(slot)) ++slot;
  assert(slot < taken.size());
  session->record.slot = slot;
  session->has_slot = true;
}

size_t SessionTable::CountAlive() const {
  return static_cast<size_t>(std::count_if(sessions_.begin(), sessions_.end(), IsAlive));
}

bool SessionTable::AnyAlive() const {
  return std::any_of(sessions_.begin(), sessions_.end(), IsAlive);
}

}  // namespace control
