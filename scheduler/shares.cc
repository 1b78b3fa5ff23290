// shares: users have service time in proportion to their weights, and the sessions of one user in
// proportion to theirs. One lane runs at a time, since lanes never span users.
#include "scheduler/policies.h"

namespace scheduler {
namespace {

int64_t UserVirtual(const State& state, const Session& session) {
  const std::map<uint32_t, User>::const_iterator user = state.users.find(session.about.user);
  return user == state.users.end() ? 0 : user->second.virtual_us;
}

// The user's, with what its running session had since the last report.
int64_t UserVirtualNow(const State& state, const Session& running, int64_t now_us) {
  const std::map<uint32_t, User>::const_iterator user = state.users.find(running.about.user);
  const int64_t weight =
      user == state.users.end() ? 100 : std::max<int64_t>(1, user->second.weight);
  const int64_t since = now_us - std::max(running.granted_us, running.progress_us);
  return UserVirtual(state, running) + since * 100 / weight;
}

class Shares : public TimeSharing {
 public:
  const char* name() const override { return "shares"; }

  int64_t Rank(const State& state, const Session& session) const override {
    return session.virtual_us;
  }
  bool Before(const State& state, const Session& one, const Session& other) const override {
    if (one.about.user == other.about.user) return Policy::Before(state, one, other);
    const int64_t a = UserVirtual(state, one);
    const int64_t b = UserVirtual(state, other);
    return a != b ? a < b : one.arrival < other.arrival;
  }
  bool Preempts(const State& state, const Session& waiting, const Session& running,
                int64_t now_us) const override {
    const int64_t slice = state.limits.slice_us;
    if (waiting.about.user == running.about.user) {
      return waiting.virtual_us + slice <= VirtualNow(running, now_us);
    }
    return UserVirtual(state, waiting) + slice <= UserVirtualNow(state, running, now_us);
  }
};

}  // namespace

const Policy* SharesPolicy() {
  static const Shares policy;
  return &policy;
}

}  // namespace scheduler
