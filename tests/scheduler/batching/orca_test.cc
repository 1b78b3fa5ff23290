// Mode orca against a second transcription of Algorithm 2, which knows nothing of ours.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "scheduler/batching/iteration/modes.h"
#include "tests/harness/events.h"
#include "tests/harness/seed.h"
#include "tests/scheduler/batching/world.h"

namespace scheduler::batching::iteration {
namespace {

// Algorithm 2 with the paper's names. The wait of line 10 and the pool's other threads are events.
struct Algorithm2 {
  enum State { INITIATION, RUNNING, INCREMENT };
  struct Req {
    RequestId id = 0;
    State state = INITIATION;
    int max_tokens = 0;
    int tokens = 0;
    int computed = 0;
  };
  struct Scheduled {
    RequestId id = 0;
    int first = 0;
    int count = 0;
    bool operator==(const Scheduled&) const = default;
  };

  int n_workers = 1;
  int max_bs = 1;
  int n_slots = 0;
  int n_scheduled = 0;
  int n_rsrv = 0;
  std::vector<Req> request_pool;  // by arrival time
  std::vector<std::vector<RequestId>> engine;

  static int InBlocks(int tokens) { return (tokens + 15) / 16 * 16; }

  Req* Find(RequestId id) {
    for (Req& req : request_pool) {
      if (req.id == id) return &req;
    }
    return nullptr;
  }

  std::vector<RequestId> Select() {
    std::vector<RequestId> batch;
    for (const Req& req : request_pool) {
      if (req.state == RUNNING) continue;
      if (static_cast<int>(batch.size()) == max_bs) break;
      if (req.state == INITIATION) {
        const int new_n_rsrv = n_rsrv + InBlocks(req.max_tokens);
        if (new_n_rsrv > n_slots) break;
        n_rsrv = new_n_rsrv;
      }
      batch.push_back(req.id);
    }
    return batch;
  }

  // Lines 3 to 9, until the engine is full or nothing can be selected.
  std::vector<std::vector<Scheduled>> Schedule() {
    std::vector<std::vector<Scheduled>> batches;
    while (n_scheduled < n_workers) {
      const std::vector<RequestId> batch = Select();
      if (batch.empty()) break;
      std::vector<Scheduled> rows;
      for (const RequestId id : batch) {
        Req* const req = Find(id);
        req->state = RUNNING;
        rows.push_back({id, req->computed, req->tokens - req->computed});
      }
      ++n_scheduled;
      engine.push_back(batch);
      batches.push_back(rows);
    }
    return batches;
  }

  // Lines 10 to 15.
  void Return() {
    const std::vector<RequestId> returned = engine.front();
    engine.erase(engine.begin());
    for (const RequestId id : returned) {
      Req* const req = Find(id);
      req->state = INCREMENT;
      req->computed = req->tokens++;
      if (req->tokens < req->max_tokens) continue;
      n_rsrv -= InBlocks(req->max_tokens);
      std::erase_if(request_pool, [id](const Req& each) { return each.id == id; });
    }
    --n_scheduled;
  }
};

class Compared {
 public:
  Compared(uint64_t seed) : random_(seed) {
    Options options;
    options.context_max = 100;
    options.answers_max = 1 + static_cast<int32_t>(random_() % 6);
    options.steps_in_flight_max = 1 + static_cast<int32_t>(random_() % 4);
    const int32_t blocks = 7 + static_cast<int32_t>(random_() % 30);
    paper_.n_workers = options.steps_in_flight_max;
    paper_.max_bs = options.answers_max;
    paper_.n_slots = blocks * 16;
    ours_ = MakeBatcher("orca", options);
    Tell(EngineReady{blocks});
  }

  void Step() {
    if (random_() % 3 == 0 || in_flight_.empty()) {
      Arrived about;
      about.request = ++last_;
      about.tokens.assign(1 + random_() % 40, 5);
      about.new_max = 1 + static_cast<int32_t>(random_() % 30);
      const int prompt = static_cast<int>(about.tokens.size());
      paper_.request_pool.push_back(
          {about.request, Algorithm2::INITIATION, prompt + about.new_max, prompt, 0});
      Tell(about);
    } else {
      paper_.Return();
      StepDone done = {in_flight_.front().first, {}};
      done.sampled.resize(in_flight_.front().second);
      in_flight_.erase(in_flight_.begin());
      Tell(done);
    }
  }

 private:
  void Tell(const Event& event) {
    std::vector<Action> actions;
    ours_->OnEvent(event, ++now_us_, &actions);
    std::vector<std::vector<Algorithm2::Scheduled>> ours;
    for (const Action& action : actions) {
      const iteration::Step* const step = std::get_if<iteration::Step>(&action);
      if (step == nullptr) continue;
      ours.emplace_back();
      for (const Row& row : step->rows) ours.back().push_back({row.request, row.first, row.count});
      in_flight_.push_back({step->number, step->rows.size()});
    }
    ASSERT_EQ(ours, paper_.Schedule());
  }

  std::mt19937_64 random_;
  Algorithm2 paper_;
  std::unique_ptr<IterationBatcher> ours_;
  std::vector<std::pair<StepNumber, size_t>> in_flight_;
  RequestId last_ = 0;
  int64_t now_us_ = 0;
};

TEST(OrcaTest, DecidesAsAlgorithm2Does) {
  uint64_t seed = harness::Seed();
  for (uint64_t events = 0; events < harness::Events(40'000); events += 400, ++seed) {
    Compared both(seed);
    for (int step = 0; step < 400; ++step) both.Step();
    ASSERT_FALSE(HasFatalFailure()) << "seed " << seed;
  }
}

// Section 4.3.2: of two requests in the pool, the earlier one has run the same or more iterations.
TEST(OrcaTest, EarlierRequestsHaveRunAsManyIterations) {
  const uint64_t seed = harness::Seed();
  for (uint64_t round = 0; round < 30; ++round) {
    World::Plan plan;
    plan.options.answers_max = static_cast<int32_t>(1 + round % 5);
    plan.options.steps_in_flight_max = static_cast<int32_t>(1 + round % 3);
    plan.options.context_max = 90;
    plan.losses = plan.copies = false;
    World world(plan, seed + round);
    for (int step = 0; step < 300; ++step) {
      world.Step();
      int32_t before = 1 << 30;
      for (const std::pair<const World::AnswerId, World::Answer>& each : world.answers()) {
        ASSERT_LE(each.second.iterations, before) << "seed " << seed + round;
        before = each.second.iterations;
      }
    }
  }
}

}  // namespace
}  // namespace scheduler::batching::iteration
