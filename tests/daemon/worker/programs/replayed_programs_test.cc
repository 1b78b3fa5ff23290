// Random programs whose messages go through a client's chunks, a ring, the worker's receiver, and
// graphs of launches leave what the same steps leave one by one.
//
// The client is the product's sender of chunks, and the worker what its session loop does with
// chunks, runs and orders. The device is a model (cell_device.h) that refuses now and then.
// LANEWAY_TEST_EVENTS programs are tried; program k of a seed is program 0 of seed + k.
#include <gtest/gtest.h>

#include <cinttypes>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "shim/chunk_sender.h"
#include "tests/daemon/worker/programs/program_orders.h"
#include "tests/daemon/worker/programs/program_worker.h"
#include "tests/daemon/worker/programs/random_program.h"
#include "tests/harness/events.h"
#include "tests/harness/seed.h"

namespace worker {
namespace {

using Kind = Step::Kind;

class Trial {
 public:
  Trial(uint64_t seed, ProgramSurroundings* around)
      : dice_(seed),
        program_(dice_.Below(UINT64_MAX)),
        direct_(dice_.Below(UINT64_MAX)),
        worker_(around, dice_.Below(UINT64_MAX)),
        orders_(&direct_, dice_.Below(UINT64_MAX)),
        channel_(around->file->ClientChannel()),
        ring_(static_cast<ipc::RingSender*>(channel_.sender.get())) {
    const size_t area_bytes = size_t{1} << (11 + dice_.Below(10));
    sender_ = std::make_unique<shim::ChunkSender>(std::move(channel_.sender), ring_,
                                                  std::span(around->file->chunks(), area_bytes));
    sender_->SetWatch(&orders_);
    if (dice_.OneIn(4)) sender_->MayHold(false);
  }

  // Runs the program, and returns how the cells differ from those of its steps; empty: they agree.
  std::string Run();
  const ProgramWorker& worker() const { return worker_; }
  uint64_t orders_told() const { return orders_told_; }
  uint64_t renamings_told() const { return renamings_told_; }

 private:
  using Fold = shim::ChunkSender::Fold;

  void Take(const Step& step);
  void Send(uint16_t op, uint32_t thread, std::span<const std::byte> body,
            shim::ChunkSender::Fold fold);
  void SendAlone() { SendPing(Fold::kAlone); }
  void SendPing(Fold fold) { Send(static_cast<uint16_t>(ipc::Op::Ping), 0, {}, fold); }
  void TellOrder();
  std::string Difference();

  protocol::Dice dice_;
  RandomProgram program_;
  StepMachine direct_;
  ProgramWorker worker_;
  ProgramOrders orders_;
  ipc::Channel channel_;
  ipc::RingSender* const ring_;
  std::unique_ptr<shim::ChunkSender> sender_;
  uint64_t sent_ = 0, orders_told_ = 0, renamings_told_ = 0;
};

std::string Trial::Run() {
  for (uint32_t turn = 0;; ++turn) {
    const std::vector<Step> steps = program_.NextTurn();
    if (steps.empty()) break;
    for (const Step& step : steps) {
      Take(step);
      if (step.kind != Kind::kFinish) continue;
      worker_.ServeAll();
      if (const std::string wrong = Difference(); !wrong.empty())
        return "turn " + std::to_string(turn) + ": " + wrong;
    }
    if (dice_.OneIn(8)) sender_->MayHold(!dice_.OneIn(3));
    if (!dice_.OneIn(60)) continue;
    SendAlone();
    worker_.ServeAll();
    worker_.Start();
    orders_.Forget();
  }
  SendAlone();
  worker_.ServeAll();
  direct_.device().Finish();
  worker_.machine().device().Finish();
  return Difference();
}

std::string Trial::Difference() {
  if (worker_.broken()) return "the worker takes nothing any more";
  if (worker_.served() != sent_)
    return std::to_string(sent_) + " steps sent, " + std::to_string(worker_.served()) + " served";
  if (worker_.machine().refused() != direct_.refused()) return "other fills or copies are refused";
  for (uint32_t cell = 0; cell < kCells; ++cell) {
    if (worker_.machine().device().cells()[cell] != direct_.device().cells()[cell])
      return "cell " + std::to_string(cell) + " differs";
  }
  return "";
}

void Trial::Take(const Step& step) {
  const std::vector<std::byte> body = BytesOf(step);
  direct_.Do(body);
  if (step.kind == Kind::kNewFunction) orders_.Distrust();
  const bool folds = step.IsWork() || step.kind == Kind::kRecord || step.kind == Kind::kWait ||
                     step.kind == Kind::kFree;
  ++sent_;
  Send(OpOf(step.kind), step.thread, body,
       step.kind == Kind::kFinish ? Fold::kEndsRun
       : folds                    ? Fold::kFolds
                                  : Fold::kAlone);
  TellOrder();
  if (dice_.OneIn(100)) SendPing(dice_.OneIn(2) ? Fold::kAlone : Fold::kCuts);
  if (!dice_.OneIn(8)) return;
  for (uint64_t more = dice_.Below(12); more != 0 && worker_.ServeOne(); --more) continue;
}

void Trial::Send(uint16_t op, uint32_t thread, std::span<const std::byte> body, Fold fold) {
  ipc::MessageHeader header;
  header.bytes = static_cast<uint32_t>(sizeof header + body.size());
  header.op = op;
  header.thread = thread;
  header.context = 1;
  sender_->Begin(fold);
  std::span<std::byte> room = sender_->Reserve(header.bytes, 0);
  if (room.empty()) {
    worker_.ServeAll();
    room = sender_->Reserve(header.bytes, 0);
  }
  std::memcpy(room.data(), &header, sizeof header);
  if (!body.empty()) std::memcpy(room.data() + sizeof header, body.data(), body.size());
  sender_->Commit(header.bytes);
}

// The order holds from the next repeat on.
void Trial::TellOrder() {
  const std::optional<ProgramOrders::Order> order = orders_.TakeOrder();
  if (!order.has_value()) return;
  worker_.ServeAll();
  ++orders_told_;
  if (!order->renames.empty()) ++renamings_told_;
  EXPECT_EQ(worker_.orders().OrderRenamedLaunches(
                order->place, static_cast<unsigned>(order->messages.size()), order->edges.data(),
                static_cast<unsigned>(order->edges.size()), order->read.data(),
                static_cast<unsigned>(order->read.size()), order->patches.data(),
                static_cast<unsigned>(order->patches.size()), order->renames.data(),
                static_cast<unsigned>(order->renames.size()), order->rename_bytes),
            CUDA_SUCCESS);
}

TEST(ReplayedProgramsTest, LeaveWhatTheirStepsLeaveOneByOne) {
  const uint64_t seed = harness::Seed(), count = harness::Events(20'000, 500);
  ProgramSurroundings around;
  uint64_t served = 0, replayed = 0, orders = 0, renamings = 0;
  for (uint64_t k = 0; k < count; ++k) {
    Trial trial(seed + k, &around);
    const std::string wrong = trial.Run();
    ASSERT_EQ(wrong, "") << "LANEWAY_TEST_SEED=" << seed + k << " LANEWAY_TEST_EVENTS=1";
    served += trial.worker().served();
    replayed += trial.worker().replayed();
    orders += trial.orders_told();
    renamings += trial.renamings_told();
  }
  std::printf("%" PRIu64 " programs, %" PRIu64 " steps, %" PRIu64 " of them in graphs, %" PRIu64
              " orders, %" PRIu64 " of them rename\n",
              count, served, replayed, orders, renamings);
  EXPECT_EQ(CellGraphsAlive(), 0u);
  if (count < 1000) return;
  EXPECT_GT(replayed, served / 20) << "graphs were hardly tried";
  EXPECT_GT(orders, count / 100) << "orders were hardly tried";
  EXPECT_GT(renamings, count / 50) << "renaming was hardly tried";
}

}  // namespace
}  // namespace worker
