// Which session has its turn: events at random, beside a lanewayd that believes what it is told.
#include "daemon/worker/turn_table.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "ipc/overloaded.h"

namespace worker {
namespace {

namespace wire = ipc::control;
using ipc::TurnEvent;

constexpr uint64_t kSessions = 4, kLanes = 2;  // numbered from 1

// Carries out the actions on a model of gates, and of what a lanewayd believes.
class TurnWorld {
 public:
  explicit TurnWorld(uint32_t seed) : random_(seed) {}

  // Returns the first broken promise, or nothing.
  std::string Step() {
    const uint64_t session = 1 + Below(kSessions), lane = 1 + Below(kLanes);
    if (const uint32_t kind = Below(12); kind < 8) {
      BySession(kind, session);
    } else {
      ByDaemon(Below(9), session, lane);
    }
    return failure_.empty() ? Broken() : failure_;
  }

 private:
  uint32_t Below(uint64_t limit) { return static_cast<uint32_t>(random_() % limit); }

  void BySession(uint32_t kind, uint64_t session) {
    const bool lives = live_.count(session) != 0;
    if (!lives) {
      if (kind != 0) return;
      table_.Add(session);
      live_[session] = GateState::kClosed;
      told_[session] = wire::GateEvent::kIdle;
      return;
    }
    switch (kind) {
      case 0:
        if (Below(8) != 0) return;
        Do(table_.Remove(session));
        live_.erase(session);
        return;
      case 1:
      case 2:
        if (!table_.View(session).wants) Do(table_.ReportRunnable(session));
        return;
      case 3:
        return Do(table_.ReportIdle(session, wire::GateEvent::kIdle));
      case 4:
        return Do(table_.FlushIdleReport(session));
      case 5:
        return Do(table_.Apply(session, TurnEvent::kClose));
      case 6:
        return Do(table_.Apply(session, TurnEvent::kDeviceDone));
      default:
        return Swap(session);
    }
  }

  // lanewayd orders it, and knows.
  void Swap(uint64_t session) {
    constexpr TurnEvent kKinds[] = {TurnEvent::kSwappedOut, TurnEvent::kTakeLane,
                                    TurnEvent::kSwappedIn};
    const TurnEvent event = kKinds[Below(3)];
    if (event == TurnEvent::kSwappedOut) Forget(session);
    Do(table_.Apply(session, event));
    if (event == TurnEvent::kTakeLane) Believe(session);
  }

  void ByDaemon(uint32_t kind, uint64_t session, uint64_t lane) {
    switch (kind) {
      case 0:
      case 1: {
        const bool holds = table_.View(session).granted;
        Do(table_.Grant(session, lane));
        if (!holds) Believe(session);
        return;
      }
      case 2:
        return Do(table_.Revoke(session));
      case 3:
        if (table_.View(session).lane != lane) Forget(session);
        return Do(table_.SetLane(session, lane));
      case 4:
        return Do(table_.SetPaused(session, Below(2) == 0));
      case 5:
        return table_.SetSuccessors(lane, {1 + Below(kSessions), 1 + Below(kSessions)});
      case 6:
        if (!daemon_) return;
        policies_[lane] = {lane, Below(2), Below(2)};
        return Do(table_.SetPolicy(policies_[lane]));
      default:
        daemon_ = Below(3) != 0;
        // A new daemon takes all for runnable until it hears otherwise.
        if (daemon_) told_.clear();
        Do(table_.SetDaemon(daemon_));
        Adopt();
    }
  }

  // A new daemon reads which sessions there are.
  void Adopt() {
    believed_.clear();
    for (const std::pair<const uint64_t, GateState>& entry : live_) {
      Believe(entry.first);
      if (table_.View(entry.first).wants) told_[entry.first] = wire::GateEvent::kRunnable;
    }
  }
  void Believe(uint64_t session) {
    const GateView view = table_.View(session);
    if (view.granted) believed_[view.lane] = session;
  }
  void Forget(uint64_t session) {
    std::erase_if(believed_, [session](const std::pair<const uint64_t, uint64_t>& entry) {
      return entry.second == session;
    });
  }

  void Do(const TurnActions& actions) {
    for (const TurnAction& action : actions) {
      std::visit(
          ipc::Overloaded{[this](const ShowGate& show) { live_.at(show.session) = show.state; },
                          [this](const OpenGate& open) {
                            live_.at(open.session) = GateState::kOpen;
                            if (open.switched.has_value()) Hear(*open.switched);
                          },
                          [](const PrepareSession&) {}, [](const WakeSession&) {},
                          [this](const TurnReport& report) {
                            std::visit([this](const auto& message) { Hear(message); }, report);
                          }},
          action);
    }
  }

  void Hear(const wire::GateReport& report) {
    wire::GateEvent& told = told_[report.session_id];
    if (daemon_ && told == report.event) Fail("a report is told twice");
    told = report.event;
  }
  void Hear(const wire::Switched& switched) {
    const uint64_t holder = believed_[switched.lane];
    const bool refuses = switched.from != holder;
    if (daemon_ && refuses && switched.to != holder) Fail("a switch is told out of order");
    believed_[switched.lane] = switched.to;
  }

  std::string Broken() {
    std::map<uint64_t, uint64_t> holders;
    for (const std::pair<const uint64_t, GateState>& entry : live_) {
      const GateView view = table_.View(entry.first);
      if (view.open != (entry.second != GateState::kClosed)) return "a gate does not show its turn";
      if (view.open && !view.granted) return "a session works in a lane that it does not hold";
      if (view.granted && !holders.emplace(view.lane, entry.first).second)
        return "two sessions hold a lane";
      const bool believed_to_work = told_[entry.first] == wire::GateEvent::kRunnable;
      if (daemon_ && !view.idle_untold && view.wants != believed_to_work)
        return "lanewayd believes otherwise of the work of a session";
    }
    for (uint64_t lane = 1; lane <= kLanes; ++lane) {
      const std::map<uint64_t, uint64_t>::iterator holder = holders.find(lane);
      const uint64_t now = holder == holders.end() ? 0 : holder->second;
      if (daemon_ && believed_[lane] != now) return "lanewayd believes otherwise of a lane";
      if (!daemon_ && now == 0 && policies_[lane].self_service != 0 && Waits(lane))
        return "a session waits for a free lane that no daemon opens";
    }
    return {};
  }
  bool Waits(uint64_t lane) {
    for (const std::pair<const uint64_t, GateState>& entry : live_) {
      // The table looks for another session than the one that is asked for.
      if (table_.View(entry.first).lane == lane && table_.HasCompetitor(entry.first)) return true;
    }
    return false;
  }
  void Fail(const char* sentence) {
    if (failure_.empty()) failure_ = sentence;
  }

  std::mt19937 random_;
  TurnTable table_;
  bool daemon_ = true;
  std::map<uint64_t, GateState> live_;        // by session: what its thread sees
  std::map<uint64_t, wire::GateEvent> told_;  // by session
  std::map<uint64_t, uint64_t> believed_;     // by lane: its holder
  std::map<uint64_t, wire::LanePolicy> policies_;
  std::string failure_;
};

TEST(TurnTableTest, AtRandomNoPromiseIsBroken) {
  constexpr uint32_t kSeeds = 20;
  for (uint32_t seed = 1; seed <= kSeeds; ++seed) {
    TurnWorld world(seed);
    for (int step = 0; step < 5'000; ++step) ASSERT_EQ(world.Step(), "") << seed << ' ' << step;
  }
}

bool Opens(const TurnActions& actions, uint64_t session) {
  for (const TurnAction& action : actions) {
    const OpenGate* const open = std::get_if<OpenGate>(&action);
    if (open != nullptr && open->session == session) return true;
  }
  return false;
}

std::vector<wire::GateEvent> ReportsOf(const TurnActions& actions, uint64_t session) {
  std::vector<wire::GateEvent> events;
  for (const TurnAction& action : actions) {
    const TurnReport* const report = std::get_if<TurnReport>(&action);
    if (report == nullptr) continue;
    const auto* const gate = std::get_if<wire::GateReport>(report);
    if (gate != nullptr && gate->session_id == session) events.push_back(gate->event);
  }
  return events;
}

TEST(TurnTableTest, AGrantToASessionOnTheHostIsRefused) {
  TurnTable table;
  table.Add(1);
  table.Apply(1, TurnEvent::kSwappedOut);
  EXPECT_FALSE(Opens(table.Grant(1, 7), 1));
  EXPECT_FALSE(table.View(1).granted);
  table.Apply(1, TurnEvent::kSwappedIn);
  EXPECT_TRUE(Opens(table.Grant(1, 7), 1));
}

// The device finishes what the session had queued in a lane that it has been taken out of.
TEST(TurnTableTest, AHandOverThatComesTooLateLeavesTheNextLaneAlone) {
  TurnTable table;
  table.Add(1);
  table.Grant(1, 7);
  table.Apply(1, TurnEvent::kClose);
  table.SetLane(1, 8);
  table.Grant(1, 8);
  EXPECT_TRUE(table.Apply(1, TurnEvent::kDeviceDone).empty());
  EXPECT_TRUE(table.View(1).open);
}

// Otherwise the next lanewayd would wait for work of the session to end, and grant no other session
// the lane.
TEST(TurnTableTest, ANewDaemonHearsThatAHolderHasNoWork) {
  TurnTable table;
  for (const uint64_t session : {1, 2}) table.Add(session);
  table.SetDaemon(true);
  table.Grant(1, 7);
  table.ReportRunnable(1);
  table.ReportIdle(1, wire::GateEvent::kIdle);
  table.SetDaemon(false);
  const TurnActions actions = table.SetDaemon(true);
  EXPECT_EQ(ReportsOf(actions, 1), std::vector<wire::GateEvent>{wire::GateEvent::kIdle});
}

TEST(TurnTableTest, WithoutADaemonAPauseThatEndsLetsTheSessionIn) {
  TurnTable table;
  table.Add(1);
  table.SetPaused(1, true);
  table.ReportRunnable(1);
  EXPECT_FALSE(Opens(table.SetDaemon(false), 1));
  EXPECT_TRUE(Opens(table.SetPaused(1, false), 1));
}

}  // namespace
}  // namespace worker
