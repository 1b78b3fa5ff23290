// Gangs: ranks of one job are granted in one step or not at all, so that a collective is never
// split by a switch. One gang at a time is given its lanes: each is reserved for its rank, its
// holder revoked, and when all are free all ranks are granted. Two gangs can't wait for each other.
#include <cassert>

#include "scheduler/core.h"

namespace scheduler {
namespace {

constexpr int kGangScanMax = 4;  // gangs that a decision looks at

bool GivesWay(const Core& core, const Session& rank, const Session& holder) {
  if (holder.revoked) return true;
  if (holder.progressing()) return ShouldPreempt(core, rank, holder);
  return !holder.inside && holder.place.residence == Residence::kDevice;
}

bool LaneCanBegin(Core* core, const Session& rank) {
  const Lane& lane = *core->LaneOf(rank.lane);
  if (lane.closing || lane.shrinking_to >= 0 || lane.reserved != 0) return false;
  const Session* const holder = lane.holder;
  if (holder != nullptr && !GivesWay(*core, rank, *holder)) return false;
  const Session* const head = Head(core, lane);
  return head == nullptr || Starves(*core, rank) ||
         !core->state->policy->Before(*core->state, *head, rank);
}

unsigned RanksOn(Core* core, const Gang& gang, uint32_t device) {
  unsigned ranks = 0;
  for (const SessionId id : gang.members) ranks += core->Find(id)->about.device == device;
  return ranks;
}

// Whether who waits in a lane that nobody uses is before the rank: it would push the rank out at
// once.
bool IsBeforeRank(Core* core, const Lane& lane, const Session& rank) {
  const bool unused = lane.holder == nullptr || !lane.holder->progressing();
  if (!unused || lane.closing || lane.shrinking_to >= 0 || Starves(*core, rank)) return false;
  const Session* const head = Head(core, lane);
  return head != nullptr && core->state->policy->Before(*core->state, *head, rank);
}

// Others on the rank's device, where they are too many beside the gang, give way, too.
bool DeviceCanBegin(Core* core, const Gang& gang, const Session& rank) {
  const Device& device = *core->DeviceOf(rank);
  if (device.lost) return false;
  const unsigned width = core->state->policy->Width(*core->state, device);
  const unsigned ranks = RanksOn(core, gang, device.id);
  unsigned others = 0;
  unsigned earlier = 0;
  bool all_give_way = true;
  for (Lane* const lane : device.lanes) {
    earlier += IsBeforeRank(core, *lane, rank);
    const Session* const holder = lane->holder;
    if (holder == nullptr || gang.members.count(holder->id) != 0) continue;
    ++others;
    all_give_way = all_give_way && GivesWay(*core, rank, *holder);
  }
  return others + ranks + earlier <= width || (all_give_way && earlier == 0);
}

bool CanBegin(Core* core, const Gang& gang) {
  for (const SessionId id : gang.members) {
    const Session& rank = *core->Find(id);
    if (!LaneCanBegin(core, rank) || !DeviceCanBegin(core, gang, rank)) return false;
  }
  return true;
}

void Begin(Core* core, const Gang& gang) {
  core->state->assembling = gang.job;
  for (const SessionId id : gang.members) {
    Session* const rank = core->Find(id);
    Lane* const lane = core->LaneOf(rank->lane);
    lane->reserved = id;
    rank->reserving = lane->id;
    core->devices.insert(lane->device);
    if (lane->holder != nullptr) RevokeHolder(core, lane, false);
  }
}

bool IsAssembled(Core* core, const Gang& gang) {
  for (const SessionId id : gang.members) {
    const Session& rank = *core->Find(id);
    const Lane& lane = *core->LaneOf(rank.lane);
    if (lane.holder != nullptr || lane.closing || lane.shrinking_to >= 0) return false;
    const Device& device = *core->DeviceOf(rank);
    if (device.lost) return false;
    unsigned others = 0;
    for (const Lane* const other : device.lanes) {
      others += other->holder != nullptr && other->holder->progressing();
    }
    const unsigned ranks = RanksOn(core, gang, device.id);
    const unsigned width = core->state->policy->Width(*core->state, device);
    if (others > 0 && others + ranks > width) return false;
  }
  return true;
}

void Complete(Core* core, const Gang& gang) {
  core->state->assembling = 0;  // before Hold, which takes the ranks off the list
  for (const SessionId id : gang.members) {
    Session* const rank = core->Find(id);
    Hold(core, core->LaneOf(rank->lane), rank);
    core->actions.push_back(Grant{id, rank->lane});
  }
}

// Lists the gang when enough of its members are ready, by the key of the last member in their
// order.
void ListReadyGang(State* state, Gang* gang) {
  if (gang->ready < gang->needed() || gang->key.session != 0) return;
  Key last;
  for (const SessionId id : gang->members) {
    const Key& turn = state->sessions.at(id).turn;
    if (turn.session != 0 && (last.session == 0 || last < turn)) last = turn;
  }
  gang->key = {last.rank, last.arrival, gang->job};
  state->ready_gangs.insert(gang->key);
}

}  // namespace

void JoinGang(State* state, const Session& session) {
  Gang& gang = state->gangs[session.about.job];
  gang.job = session.about.job;
  gang.size = session.about.gang_size;
  gang.members.insert(session.id);
  if (gang.ended > 0) --gang.ended;  // this rank replaces an ended one
}

void LeaveGang(State* state, const Session& session) {
  const std::map<uint64_t, Gang>::iterator found = state->gangs.find(session.about.job);
  if (found == state->gangs.end()) return;
  Gang& gang = found->second;
  const bool was_complete = gang.members.size() + gang.ended >= gang.size;
  gang.members.erase(session.id);
  if (gang.members.empty()) {
    state->gangs.erase(found);
    return;
  }
  if (was_complete) ++gang.ended;
  ListReadyGang(state, &gang);
}

void ListGangMember(Core* core, Session* session) {
  session->turn = {core->state->policy->Rank(*core->state, *session), session->arrival,
                   session->id};
  Gang& gang = core->state->gangs.at(session->about.job);
  ++gang.ready;
  ListReadyGang(core->state, &gang);
}

void UnlistGangMember(Core* core, Session* session) {
  Gang& gang = core->state->gangs.at(session->about.job);
  assert(gang.ready > 0);
  --gang.ready;
  if (gang.key.session != 0) {
    core->state->ready_gangs.erase(gang.key);
    gang.key = Key();
  }
  if (core->state->assembling != gang.job) return;
  core->state->assembling = 0;
  for (const SessionId id : gang.members) {
    Session* const rank = core->Find(id);
    if (Lane* const lane = core->LaneOf(rank->reserving)) {
      lane->reserved = 0;
      core->devices.insert(lane->device);
    }
    rank->reserving = 0;
  }
}

void GiveGangTurns(Core* core) {
  State* const state = core->state;
  if (state->assembling == 0) {
    int scanned = 0;
    for (const Key& key : state->ready_gangs) {
      if (scanned++ == kGangScanMax) break;
      const Gang& gang = state->gangs.at(key.session);
      if (!CanBegin(core, gang)) continue;
      Begin(core, gang);
      break;
    }
  }
  if (state->assembling == 0) return;
  const Gang& gang = state->gangs.at(state->assembling);
  if (IsAssembled(core, gang)) Complete(core, gang);
}

}  // namespace scheduler
