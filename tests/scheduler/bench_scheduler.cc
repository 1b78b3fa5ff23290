// What a decision costs with many sessions: the time of OnEvent, per event, under each policy.
//
// A closed loop: sessions run iterations, report, switch, go idle, come back, ask for memory, leave
// and arrive, on one device. The figure of a policy is the 99th percentile of all events but timers
// that decide nothing, which are many and cheap; a sample is one of several runs. The device has
// room for everybody, or for a third of what they need, so that memory is waited for and swapped.
// usage: bench_scheduler [--json] [--quick]
#include <algorithm>
#include <chrono>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "scheduler/scheduler.h"
#include "tests/shim/bench/report.h"

namespace scheduler {
namespace {

constexpr int64_t kPersistentBytes = int64_t{1} << 28;  // of a session

struct Loop {
  Loop(const std::string& policy, unsigned sessions_many, int64_t capacity_bytes)
      : state(policy), sessions_max(sessions_many) {
    state.limits.sessions_max = sessions_many;
    Tell(CapacityChanged{0, capacity_bytes, 1 << 30, 1 << 30});
    for (unsigned i = 0; i < sessions_many; ++i) Arrive();
  }

  void Arrive() {
    SessionArrived about = {next, next, static_cast<uint32_t>(next % 4)};
    about.priority = next % 3;
    about.deadline_us = next % 2 == 0 ? 50'000 : 0;
    about.iterations = 100 + static_cast<int64_t>(next % 1000);
    about.estimate = {kPersistentBytes, int64_t{1} << (20 + next % 8), 5'000, 0};
    ++next;
    Tell(about);
    Tell(Runnable{about.session});
    sessions.push_back(about.session);
  }

  void Tell(const Event& event) {
    const std::chrono::steady_clock::time_point begin = std::chrono::steady_clock::now();
    const std::vector<Action> actions = OnEvent(&state, event, now_us);
    const std::chrono::steady_clock::time_point end = std::chrono::steady_clock::now();
    const bool nothing = std::holds_alternative<Timer>(event) && actions.empty();
    if (!nothing)
      times_us.push_back(std::chrono::duration<double, std::micro>(end - begin).count());
    for (const Action& action : actions) Note(action);
  }

  void Note(const Action& action) {
    if (const Revoke* revoke = std::get_if<Revoke>(&action)) revoked.push_back(*revoke);
    if (const ResizeLane* resize = std::get_if<ResizeLane>(&action)) resized.push_back(*resize);
    if (const SwapOut* out = std::get_if<SwapOut>(&action))
      swapped.push_back({out->session, true, true, ""});
    if (const SwapIn* in = std::get_if<SwapIn>(&action))
      swapped.push_back({in->session, false, true, ""});
  }

  void Step() {
    now_us += 500;
    const SessionId one = sessions[random() % sessions.size()];
    const Session* const session = state.Find(one);
    switch (random() % 16) {
      case 0:
        Tell(SessionLeft{one});
        sessions.erase(std::find(sessions.begin(), sessions.end(), one));
        Arrive();
        break;
      case 1:
        if (!session->granted && session->need == Need::kNone) Tell(Idle{one, true});
        break;
      case 2:
        Tell(Runnable{one});
        break;
      case 3:
        if (session->need == Need::kNone && session->phase == Phase::kAdmitted &&
            session->place.residence == Residence::kDevice)
          Tell(MemoryNeeded{one, 2 << 20});
        break;
      default:
        Tell(Timer{});
        RunHolders();
        break;
    }
    Follow();
  }

  void RunHolders() {
    std::vector<SessionId> holders;
    for (const std::pair<const LaneId, Lane>& entry : state.lanes) {
      if (entry.second.holder != nullptr) holders.push_back(entry.second.holder->id);
    }
    if (holders.empty()) return;
    Tell(Progress{holders[random() % holders.size()], 1, 500});
  }

  void Follow() {
    while (!revoked.empty()) {
      const Revoke revoke = revoked.back();
      revoked.pop_back();
      const std::unordered_map<LaneId, Lane>::const_iterator lane = state.lanes.find(revoke.lane);
      if (lane == state.lanes.end() || lane->second.holder != state.Find(revoke.session)) continue;
      const std::vector<SessionId>& next = lane->second.published;
      Tell(Switched{revoke.lane, revoke.session, next.empty() ? 0 : next[0]});
    }
    while (!resized.empty()) {
      const ResizeLane resize = resized.back();
      resized.pop_back();
      Tell(LaneShrunk{resize.lane, resize.bytes});
    }
    while (!swapped.empty()) {
      const Swapped done = swapped.back();
      swapped.pop_back();
      Tell(done);
    }
  }

  State state;
  unsigned sessions_max;
  int64_t now_us = 0;
  SessionId next = 1;
  std::mt19937_64 random{1};
  std::vector<SessionId> sessions;
  std::vector<double> times_us;
  std::vector<Revoke> revoked;
  std::vector<ResizeLane> resized;
  std::vector<Swapped> swapped;
};

double Percentile(std::vector<double> times, double share) {
  const size_t at = static_cast<size_t>(share * static_cast<double>(times.size() - 1));
  std::nth_element(times.begin(), times.begin() + static_cast<ptrdiff_t>(at), times.end());
  return times[at];
}

struct Setting {
  unsigned sessions = 1'000;
  bool small = false;  // the device has room for a third of them
  int rounds = 7;
  int steps = 20'000;
};

bench::Figure Measure(const std::string& policy, const Setting& setting) {
  const int64_t all = kPersistentBytes * setting.sessions;
  bench::Figure figure = {policy + ": decision p99 at " + std::to_string(setting.sessions) +
                              (setting.small ? " sessions, room for 1/3" : " sessions"),
                          "us"};
  for (int round = 0; round < setting.rounds; ++round) {
    Loop loop(policy, setting.sessions, setting.small ? all / 3 : 4 * all + (int64_t{8} << 30));
    loop.times_us.clear();
    for (int step = 0; step < setting.steps; ++step) loop.Step();
    figure.samples.push_back(Percentile(loop.times_us, 0.99));
  }
  return figure;
}

}  // namespace
}  // namespace scheduler

int main(int argc, char** argv) {
  bool as_json = false;
  bool quick = false;
  for (int i = 1; i < argc; ++i) {
    as_json |= std::strcmp(argv[i], "--json") == 0;
    quick |= std::strcmp(argv[i], "--quick") == 0;
  }
  scheduler::Setting setting;
  if (quick) setting.rounds = 3, setting.steps = 5'000;
  bench::Report report;
  for (const bool small : {false, true}) {
    setting.small = small;
    for (const char* const policy :
         {"fifo", "srtf", "pack", "fair", "rr", "priority", "edf", "shares"}) {
      bench::Figure figure = scheduler::Measure(policy, setting);
      figure.bar = 5;
      report.Add(figure);
    }
  }
  setting.small = false;
  for (const unsigned sessions : {10u, 100u, 10'000u}) {  // how it grows
    setting.sessions = sessions;
    report.Add(scheduler::Measure("fair", setting));
  }
  report.Print(as_json);
  return report.exit_code();
}
