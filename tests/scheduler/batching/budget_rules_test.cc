// Mode budget against its rules as budget_rules.h has them, action for action: every small case,
// and random ones with cancels, deadlines, classes and several steps in flight.
#include "tests/scheduler/batching/budget_rules.h"

#include <gtest/gtest.h>

#include <deque>
#include <random>

#include "scheduler/batching/iteration/modes.h"
#include "tests/harness/events.h"
#include "tests/harness/seed.h"

namespace scheduler::batching::iteration {
namespace {

const char* NameOf(Ending why) {
  switch (why) {
    case Ending::kStopped:
      return "stopped";
    case Ending::kLength:
      return "length";
    case Ending::kCancelled:
      return "cancelled";
    case Ending::kExpired:
      return "expired";
    default:
      return "?";
  }
}

// Both are told the same, and have to do the same.
class Compared {
 public:
  Compared(const Options& options, int32_t blocks)
      : ours_(MakeBatcher("budget", options)), rules_(options, blocks) {
    Tell(EngineReady{blocks});
  }

  bool Arrive(const Arrived& about) {
    return Same(Tell(about), rules_.Arrive(about, now_us), "an arrival");
  }
  bool Cancel(RequestId request) {
    return Same(Tell(Cancelled{request}), rules_.Cancel(request, now_us), "a cancel");
  }
  // `stops` says whether the next token ends its answer.
  template <typename Stops>
  bool Finish(Stops stops) {
    StepDone done = {in_flight_.front().number, {}};
    for (const Row& row : in_flight_.front().rows) {
      const Token token = static_cast<Token>(row.request * 100) + row.first + row.count;
      if (row.samples > 0) done.sampled.push_back({token, stops()});
    }
    in_flight_.pop_front();
    return Same(Tell(done), rules_.Finish(done.sampled, now_us), "a step's end");
  }
  bool IsBusy() const { return !in_flight_.empty(); }
  bool IsEmpty() const { return ours_->state().requests.empty(); }
  const std::string& trail() const { return trail_; }
  int64_t preemptions() const { return ours_->state().counters.preemptions; }
  int64_t hits() const { return ours_->state().counters.prefix_hit_tokens; }

  int64_t now_us = 0;

 private:
  BudgetRules::Actions Tell(const Event& event) {
    std::vector<Action> actions;
    ours_->OnEvent(event, now_us, &actions);
    BudgetRules::Actions done;
    for (const Action& action : actions)
      std::visit([&](const auto& each) { Apply(each, &done); }, action);
    return done;
  }
  void Apply(const Step& step, BudgetRules::Actions* done) {
    std::string text = "step";
    for (const Row& row : step.rows) {
      absl::StrAppend(&text, " ", row.request, "[", row.first, "+", row.count,
                      row.samples > 0 ? "!" : "", " blocks ", row.table_first, "+",
                      row.blocks.size(), "]");
    }
    done->push_back(text);
    in_flight_.push_back(step);
  }
  void Apply(const Finished& finished, BudgetRules::Actions* done) {
    done->push_back(absl::StrCat("end ", finished.request, ": ", NameOf(finished.why)));
  }
  void Apply(const Rejected& rejected, BudgetRules::Actions* done) {
    done->push_back(absl::StrCat("refuse ", rejected.request, ": ",
                                 rejected.why == Refusal::kQueueFull ? "queue full" : "too long"));
  }
  void Apply(const Preempted& preempted, BudgetRules::Actions* done) {
    done->push_back(absl::StrCat("preempt ", preempted.request));
  }
  void Apply(const SetTimer&, BudgetRules::Actions*) {}  // events are told at all times
  bool Same(const BudgetRules::Actions& ours, const BudgetRules::Actions& rules,
            const char* event) {
    const auto lines = [](const BudgetRules::Actions& actions) {
      std::string text;
      for (const std::string& action : actions) absl::StrAppend(&text, "  ", action, "\n");
      return text;
    };
    if (ours == rules) return true;
    trail_ = absl::StrCat(event, " at ", now_us, " us: ours\n", lines(ours), "by the rules\n",
                          lines(rules));
    return false;
  }

  std::unique_ptr<IterationBatcher> ours_;
  BudgetRules rules_;
  std::deque<Step> in_flight_;
  std::string trail_;
};

struct Kind {
  int32_t prompt = 1;
  int32_t answer = 1;
};

// When the requests come.
enum Arrivals { kAtOnce, kOneAStep, kAfterTheFirst, kArrivals };

struct Case {
  std::vector<Kind> kinds;
  Options options;
  int32_t blocks = 1;
  Arrivals arrivals = kAtOnce;
  bool alike = false;  // prompts begin alike

  std::string Text() const {
    std::string text =
        absl::StrCat(blocks, " blocks, ", options.tokens_max, " tokens a step, ",
                     options.answers_max, " answers, watermark ", options.watermark_blocks,
                     ", arrivals ", arrivals, alike ? ", alike:" : ":");
    for (const Kind& kind : kinds) absl::StrAppend(&text, " ", kind.prompt, "+", kind.answer);
    return text;
  }
};

struct Totals {
  int64_t cases = 0;
  int64_t preemptions = 0;
  int64_t hits = 0;
};

// Adds up what the cases have met, so that a test can say that they were worth their time.
bool Run(const Case& given, Totals* totals) {
  Compared both(given.options, given.blocks);
  const auto never = [] { return false; };
  size_t arrived = 0;
  const auto arrive = [&] {
    const Kind& kind = given.kinds[arrived++];
    Arrived about;
    about.request = arrived;
    about.new_max = kind.answer;
    for (int32_t at = 0; at < kind.prompt; ++at)
      about.tokens.push_back(given.alike ? at : static_cast<Token>(arrived * 100) + at);
    return both.Arrive(about);
  };
  bool same = true;
  for (int turn = 0; same && turn < 1000; ++turn) {
    ++both.now_us;
    const bool is_due =
        arrived < given.kinds.size() &&
        (given.arrivals == kAtOnce || (given.arrivals == kOneAStep && turn % 2 == 0) ||
         (given.arrivals == kAfterTheFirst && (turn == 0 || both.IsEmpty() || arrived > 1)));
    if (is_due) {
      same = arrive();
    } else if (both.IsBusy()) {
      same = both.Finish(never);
    } else if (arrived == given.kinds.size()) {
      break;
    }
  }
  ++totals->cases;
  totals->preemptions += both.preemptions();
  totals->hits += both.hits();
  EXPECT_TRUE(same) << given.Text() << "\n" << both.trail();
  EXPECT_TRUE(!same || both.IsEmpty()) << given.Text() << ": requests do not end";
  return same && both.IsEmpty();
}

// All mixes of `count` of these kinds, in each of these worlds. Under a sanitizer some of them.
Totals RunAll(size_t count, const std::vector<Kind>& kinds, const std::vector<int32_t>& pools,
              const std::vector<int32_t>& budgets) {
  Totals totals;
  size_t mixes = 1;
  for (size_t i = 0; i < count; ++i) mixes *= kinds.size();
  for (size_t mix = 0; mix < mixes; mix += harness::kSanitized ? 97 : 1) {
    Case given;
    size_t digits = mix;
    for (size_t i = 0; i < count; ++i, digits /= kinds.size())
      given.kinds.push_back(kinds[digits % kinds.size()]);
    for (const int32_t blocks : pools) {
      for (const int32_t budget : budgets) {
        for (int world = 0; world < kArrivals * 4; ++world) {
          given.blocks = blocks;
          given.options.tokens_max = budget;
          given.options.answers_max = std::min(budget, 3);
          given.arrivals = static_cast<Arrivals>(world % kArrivals);
          given.alike = world / kArrivals % 2 == 1;
          given.options.watermark_blocks = world / kArrivals / 2;
          given.options.ahead = (mix + static_cast<size_t>(blocks + budget)) % 2 == 0;
          given.options.steps_in_flight_max = given.options.ahead ? 2 : 1;
          if (!Run(given, &totals)) return totals;
        }
      }
    }
  }
  return totals;
}

std::vector<Kind> KindsOf(const std::vector<int32_t>& prompts,
                          const std::vector<int32_t>& answers) {
  std::vector<Kind> kinds;
  for (const int32_t prompt : prompts) {
    for (const int32_t answer : answers) kinds.push_back({prompt, answer});
  }
  return kinds;
}

TEST(BudgetRulesTest, EachRequestAloneIsTreatedByTheRules) {
  std::vector<int32_t> prompts, budgets;
  for (int32_t prompt = 1; prompt <= 20; ++prompt) prompts.push_back(prompt);
  for (int32_t budget = 2; budget <= 24; ++budget) budgets.push_back(budget);
  const Totals totals = RunAll(1, KindsOf(prompts, {1, 2, 3, 4}), {1, 2, 3}, budgets);
  EXPECT_TRUE(harness::kSanitized || totals.cases == 80 * 3 * 23 * 12);
}

TEST(BudgetRulesTest, EveryPairIsTreatedByTheRules) {
  std::vector<int32_t> prompts;
  for (int32_t prompt = 1; prompt <= 20; ++prompt) prompts.push_back(prompt);
  const Totals totals = RunAll(2, KindsOf(prompts, {1, 4}), {2, 3}, {2, 9, 24});
  if (harness::kSanitized) return;
  EXPECT_GT(totals.preemptions, 500);
  EXPECT_GT(totals.hits, 500);
}

TEST(BudgetRulesTest, MixesOfThreeAndFourAreTreatedByTheRules) {
  const Totals three = RunAll(3, KindsOf({1, 13, 16, 17, 20}, {1, 4}), {2, 3, 4}, {2, 9, 24});
  const Totals four = RunAll(4, KindsOf({1, 14, 16, 20}, {4}), {2, 3, 5, 6}, {3, 16, 24});
  EXPECT_TRUE(harness::kSanitized || (three.preemptions > 1000 && four.preemptions > 1000));
}

// One random world, told random events.
bool RunRandom(uint64_t seed, Totals* totals) {
  std::mt19937_64 random(seed);
  const auto below = [&random](int end) {
    return static_cast<int32_t>(random() % static_cast<uint64_t>(end));
  };
  Options options;
  options.answers_max = 1 + below(5);
  options.tokens_max = options.answers_max + below(24);
  options.context_max = 30 + below(80);
  options.watermark_blocks = below(3);
  options.steps_in_flight_max = 1 + below(3);
  options.ahead = options.steps_in_flight_max == 2 && below(2) == 0;
  options.prefix_cache = below(5) != 0;
  options.order = below(2) == 0 ? Order::kFcfs : Order::kPriority;
  options.aging_us = 40;
  options.queue_requests_max = 2 + below(20);
  options.queue_tokens_max = 100 + below(1000);
  Compared both(options, 2 + below(12));
  RequestId last = 0;
  bool same = true;
  for (int event = 0; same && event < 300; ++event) {
    both.now_us += below(10);
    const int32_t what = below(10);
    if (what == 0 && last > 0) {
      same = both.Cancel(last - random() % last);
    } else if (what < 4 || !both.IsBusy()) {
      Arrived about;
      about.request = ++last;
      about.tokens.assign(static_cast<size_t>(1 + below(60)), below(2));
      if (below(2) == 0) about.tokens.back() = 1000;
      about.new_max = 1 + below(30);
      about.needs_drawn = below(5) == 0;
      about.priority = static_cast<uint32_t>(below(3));
      about.deadline_us = below(6) == 0 ? 1 + below(200) : 0;
      same = both.Arrive(about);
    } else {
      same = both.Finish([&] { return below(25) == 0; });
    }
  }
  ++totals->cases;
  totals->preemptions += both.preemptions();
  totals->hits += both.hits();
  EXPECT_TRUE(same) << "seed " << seed << "\n" << both.trail();
  return same;
}

TEST(BudgetRulesTest, RandomEventsAreTreatedByTheRules) {
  const uint64_t seed = harness::Seed();
  const uint64_t rounds = harness::Events(4000, 200);
  Totals totals;
  for (uint64_t round = 0; round < rounds; ++round) {
    if (!RunRandom(seed + round, &totals)) return;
  }
  EXPECT_TRUE(rounds < 1000 || totals.preemptions > 100);
  EXPECT_TRUE(rounds < 1000 || totals.hits > 100);
}

}  // namespace
}  // namespace scheduler::batching::iteration
