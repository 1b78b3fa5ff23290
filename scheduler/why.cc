#include "scheduler/why.h"

#include <algorithm>
#include <charconv>

#include "scheduler/core.h"

namespace scheduler {
namespace {

std::string Number(double value, const char* unit) {
  const int digits = value < 10 && value != static_cast<double>(static_cast<int64_t>(value));
  char text[48];
  const std::to_chars_result end =
      std::to_chars(text, text + sizeof(text), value, std::chars_format::fixed, digits);
  std::string said(text, end.ptr);
  return said.append(" ").append(unit);
}

// How much longer its iteration takes, going by those before.
int64_t LeftOfIteration(const Session& holder, int64_t now_us) {
  const int64_t each =
      holder.iteration_us > 0 ? holder.iteration_us : holder.about.estimate.iteration_us;
  if (each <= 0) return 0;
  const int64_t since = now_us - std::max(holder.granted_us, holder.progress_us);
  return each - since % each;
}

Cause HeldBy(const State& state, const Lane& lane, int64_t now_us) {
  const Session& holder = *lane.holder;
  Cause cause = {Reason::kLaneHeld, lane.bytes, lane.id, holder.id, holder.about.job};
  cause.us = holder.progressing() ? LeftOfIteration(holder, now_us) : 0;
  return cause;
}

// Whose memory it would be, if it were swapped or given back.
void AddHolder(const State& state, const Session& session, std::vector<Cause>* chain) {
  const Device& device = state.devices.at(session.about.device);
  if (device.coming_bytes > 0) {
    chain->push_back({Reason::kMoreComing, device.coming_bytes});
    return;
  }
  const Session* largest = nullptr;
  for (const Lane* const lane : device.lanes) {
    const Session* const holder = lane->holder;
    if (holder == nullptr || holder->id == session.id) continue;
    if (largest == nullptr || holder->charged_bytes > largest->charged_bytes) largest = holder;
  }
  for (const Index::value_type& resident : device.lru) {
    if (largest != nullptr) break;
    if (resident.second != &session) largest = resident.second;
  }
  if (largest == nullptr) return;
  chain->push_back({Reason::kMemoryHeld, largest->charged_bytes, largest->lane, largest->id,
                    largest->about.job});
  if (!largest->about.fixed && !SwapSpaceFits(state, *largest))
    chain->push_back({Reason::kNoSwapSpace, state.limits.swap_bytes});
}

// False: the user's quota leaves enough.
bool AddUserMemory(const State& state, const Session& session, int64_t bytes,
                   std::vector<Cause>* chain) {
  const std::map<uint32_t, User>::const_iterator user = state.users.find(session.about.user);
  if (user == state.users.end() || user->second.memory_bytes <= 0) return false;
  Cause cause = {Reason::kUserMemory, bytes};
  cause.used = user->second.UsedOn(session.about.device);
  cause.quota = user->second.memory_bytes;
  if (bytes <= cause.quota - cause.used) return false;
  chain->push_back(cause);
  return true;
}

void AddMemory(const State& state, const Session& session, int64_t bytes,
               std::vector<Cause>* chain) {
  const Device& device = state.devices.at(session.about.device);
  if (AddUserMemory(state, session, bytes, chain)) return;
  if (device.free_bytes() < bytes) {
    chain->push_back({Reason::kMemory, bytes});
    AddHolder(state, session, chain);
    return;
  }
  chain->push_back({Reason::kMemoryOrder, bytes});
}

bool AddPlace(const State& state, const Session& session, std::vector<Cause>* chain) {
  const std::map<uint32_t, User>::const_iterator user = state.users.find(session.about.user);
  const bool full = state.admitted >= state.limits.sessions_max;
  const bool quota = user != state.users.end() && user->second.sessions_max > 0 &&
                     user->second.admitted >= user->second.sessions_max;
  if (!full && !quota) return false;
  Cause cause = {full ? Reason::kNoPlace : Reason::kUserPlace};
  cause.count = state.limits.sessions_max;
  if (!full) {
    cause.used = user->second.admitted;
    cause.quota = user->second.sessions_max;
  }
  chain->push_back(cause);
  return true;
}

void AddTurn(const State& state, const Session& session, int64_t now_us,
             std::vector<Cause>* chain) {
  const Lane& lane = state.lanes.at(session.lane);
  const Device& device = state.devices.at(session.about.device);
  if (session.gang()) {
    const Gang& gang = state.gangs.at(session.about.job);
    Cause cause = {Reason::kGang};
    cause.count = static_cast<int64_t>(gang.needed()) - gang.ready;
    if (cause.count > 0) chain->push_back(cause);
  }
  int64_t before = 0;
  for (const Key& key : lane.waiting) {
    if (!(key < session.turn)) break;
    ++before;
  }
  if (before > 0) {
    Cause cause = {Reason::kRank, 0, lane.id};
    cause.count = before;
    chain->push_back(cause);
  }
  if (lane.closing || lane.shrinking_to >= 0) {
    chain->push_back({Reason::kLaneClosing, 0, lane.id});
  }
  if (lane.holder != nullptr) {
    chain->push_back(HeldBy(state, lane, now_us));
    return;
  }
  for (const Lane* const other : device.lanes) {
    const Session* const holder = other->holder;
    if (holder == nullptr || !holder->progressing()) continue;
    Cause cause = HeldBy(state, *other, now_us);
    cause.reason = Reason::kWidth;
    chain->push_back(cause);
    return;
  }
}

std::string Within(int64_t us) { return us > 0 ? ", about " + Duration(us) : ""; }

std::string Phrase(const Cause& cause, bool first) {
  const std::string job = "job " + std::to_string(cause.job);
  const std::string lane = "lane " + std::to_string(cause.lane);
  switch (cause.reason) {
    case Reason::kUnknown:
      return "is not known";
    case Reason::kRuns:
      return "runs in " + lane;
    case Reason::kIdle:
      return "has no work to do";
    case Reason::kEnding:
      return "is ending";
    case Reason::kPaused:
      return "is paused";
    case Reason::kNoPlace:
      return "waits for a place: all " + std::to_string(cause.count) + " are taken";
    case Reason::kMemory:
      return "waits for " + Bytes(cause.bytes) + " of device memory";
    case Reason::kUserMemory:
      return "waits for " + Bytes(cause.bytes) + " in its user's quota: " + Bytes(cause.used) +
             " of " + Bytes(cause.quota) + " are used (--user-memory)";
    case Reason::kUserPlace:
      return "waits for a place in its user's quota: " + std::to_string(cause.used) + " of " +
             std::to_string(cause.quota) + " sessions run (--user-sessions)";
    case Reason::kMemoryOrder:
      return "waits until those before it have their memory";
    case Reason::kSwapping:
      return "waits until its memory has been moved";
    case Reason::kLaneHeld:
      return (first ? "waits for " : "") + lane + (first ? ", held by " : " is held by ") + job +
             " until its iteration ends" + Within(cause.us);
    case Reason::kLaneClosing:
      return lane + " is being made smaller";
    case Reason::kRank:
      return "waits for its turn: " + std::to_string(cause.count) +
             (cause.count == 1 ? " session is" : " sessions are") + " before it";
    case Reason::kWidth:
      return std::string(first ? "waits for its turn: " : "") + job + " runs in " + lane +
             " until its iteration ends" + Within(cause.us);
    case Reason::kGang:
      return "waits for " + std::to_string(cause.count) + " more of its job's ranks";
    case Reason::kDeviceLost:
      return "waits for the device to come back";
    case Reason::kMoreComing:
      return Bytes(cause.bytes) + " are on their way to the host";
    case Reason::kMemoryHeld:
      return job + " holds " + Bytes(cause.bytes);
    case Reason::kNoSwapSpace:
      return "the host memory for swapped jobs (--swap, " + Bytes(cause.bytes) + ") is used up";
  }
  return "";
}

}  // namespace

std::vector<Cause> Why(const State& state, SessionId id, int64_t now_us) {
  const Session* const session = state.Find(id);
  if (session == nullptr) return {{Reason::kUnknown}};
  const bool queued = session->phase == Phase::kQueued;
  std::vector<Cause> chain;
  if (session->phase == Phase::kEnding) return {{Reason::kEnding}};
  if (session->paused()) return {{Reason::kPaused}};
  if (state.devices.at(session->about.device).lost) return {{Reason::kDeviceLost}};
  if (queued && AddPlace(state, *session, &chain)) return chain;
  if (session->place.residence == Residence::kGoingOut ||
      session->place.residence == Residence::kComingIn) {
    return {{Reason::kSwapping, session->persistent_bytes}};
  }
  if (queued || session->need != Need::kNone || !session->on_device()) {
    if (!queued && session->need == Need::kNone && !session->runnable) return {{Reason::kIdle}};
    const int64_t whole = queued ? session->promised_bytes + session->ephemeral_bytes
                                 : session->persistent_bytes + session->ephemeral_bytes;
    AddMemory(state, *session, session->on_device() ? session->need_bytes : whole, &chain);
    return chain;
  }
  if (session->progressing()) {
    return {{Reason::kRuns, 0, session->lane, session->id, session->about.job}};
  }
  if (!session->runnable) return {{Reason::kIdle}};
  AddTurn(state, *session, now_us, &chain);
  if (chain.empty()) chain.push_back({Reason::kRank, 0, session->lane});
  return chain;
}

std::string Sentence(const std::vector<Cause>& chain) {
  std::string text;
  for (const Cause& cause : chain) {
    text += text.empty() ? "" : "; ";
    text += Phrase(cause, text.empty());
  }
  return text;
}

std::string Bytes(int64_t bytes) {
  static const char* const kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  int unit = 0;
  while (value >= 1024 && unit < 4) {
    value /= 1024;
    ++unit;
  }
  return Number(value, kUnits[unit]);
}

std::string Duration(int64_t us) {
  if (us >= 1'000'000) return Number(static_cast<double>(us) / 1e6, "s");
  if (us >= 1000) return Number(static_cast<double>(us) / 1e3, "ms");
  return Number(static_cast<double>(us), "us");
}

}  // namespace scheduler
