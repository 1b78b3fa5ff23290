// The stages of a call, over a channel, a caller and a session that only note what is asked of
// them.
#include "shim/pipeline.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "tests/ipc/calls/fakes.h"

namespace shim {
namespace {

using Trace = std::vector<std::string>;

// A ring that no worker reads.
class TracedRing : public ipc::RingSender {
 public:
  TracedRing(ipc::SessionPage* page, std::byte* data, RebuildLog* log, Trace* trace)
      : RingSender(&page->to_worker, data, &page->worker_doorbell), log_(*log), trace_(*trace) {}

  std::span<std::byte> Reserve(size_t bytes, int64_t timeout_us) override {
    trace_.push_back("room");
    return full ? std::span<std::byte>() : RingSender::Reserve(bytes, timeout_us);
  }
  void Commit(size_t bytes) override {
    const std::span<const std::byte> message = RingSender::Reserve(bytes, 0).first(bytes);
    std::memcpy(&last, message.data(), sizeof last);
    last_message.assign(message.begin(), message.begin() + last.bytes);
    trace_.push_back("commit " + std::string(ipc::RowOf(static_cast<ipc::Op>(last.op)).name));
    if (log_.size() > logged_) trace_.back() += ", recorded";
    logged_ = log_.size();
    RingSender::Commit(bytes);
  }

  bool full = false;
  ipc::MessageHeader last;
  std::vector<std::byte> last_message;

 private:
  const RebuildLog& log_;
  Trace& trace_;
  size_t logged_ = 0;
};

class TracedCaller : public ipc::FakeCaller {
 public:
  explicit TracedCaller(Trace* trace) : trace_(*trace) {}
  bool FindStream(const void* value, bool per_thread, ipc::HandleId* id) override {
    trace_.push_back("encode");
    return FakeCaller::FindStream(value, per_thread, id);
  }

 private:
  Trace& trace_;
};

class TracedMemory : public MemoryAtBoundary {
 public:
  explicit TracedMemory(Trace* trace) : trace_(*trace) {}
  Wishes OnBoundary() override {
    trace_.push_back("memory");
    return wishes;
  }
  void HoldFreed(bool holds) override { trace_.push_back(holds ? "freed waits" : "freed is free"); }
  void OnAllSent() override {
    awaits_sending_ = false;
    trace_.push_back("all sent");
  }
  void AwaitSending() { awaits_sending_ = true; }
  void Unmapped(const std::vector<arena::Range>& ranges) override {
    if (!ranges.empty()) trace_.push_back("unmapped");
  }

  Wishes wishes;

 private:
  Trace& trace_;
};

// A session that is lost when it is looked at.
class LostSession : public Upkeep {
 public:
  explicit LostSession(ipc::SessionPage* page) : page_(*page) {}
  CUresult RebuildLocked() override { return CUDA_ERROR_MPS_RPC_FAILURE; }
  void TryRebuild() override {}
  bool NeedsRebuild() const override { return false; }
  void CheckWorker() override { page_.loss.store(CUDA_ERROR_MPS_RPC_FAILURE); }
  CUresult Lost() override { return CUDA_ERROR_MPS_RPC_FAILURE; }

 private:
  ipc::SessionPage& page_;
};

// As in a session's file: the client's words are at the end of the page (ipc/client_words.h).
struct WholePage : ipc::SessionPage {
  std::byte rest[ipc::kPageBytes - sizeof(ipc::SessionPage)] = {};
};
static_assert(sizeof(WholePage) == ipc::kPageBytes);

class PipelineTest : public ::testing::Test {
 protected:
  PipelineTest() {
    pipeline_.Open(Ends(&ring_, &ring_));
    replies_.Open(nullptr, page_.get(), &session_);
  }

  Pipeline::Ends Ends(ipc::Sender* sender, ipc::RingSender* ring) {
    return {.sender = sender,
            .ring = ring,
            .page = page_.get(),
            .arena_base = ipc::kArena,
            .caller = &caller_,
            .iterations = &iterations_,
            .memory = &memory_,
            .log = &log_,
            .replies = &replies_,
            .upkeep = &session_};
  }

  // The program says that an iteration ends.
  void EndIteration() { iterations_.Mark(ipc::BoundarySource::kHeader); }
  Outgoing Fill() const { return {ipc::Op::cuMemsetD8Async, 0, fill_.values()}; }
  Outgoing Create() { return {ipc::Op::StreamCreate, 0, create_.values()}; }

  Trace trace_;
  std::unique_ptr<WholePage> page_ = std::make_unique<WholePage>();
  std::unique_ptr<std::byte[]> data_ = std::make_unique<std::byte[]>(ipc::limits::kRingBytes);
  RebuildLog log_;
  TracedRing ring_{page_.get(), data_.get(), &log_, &trace_};
  TracedCaller caller_{&trace_};
  TracedMemory memory_{&trace_};
  LostSession session_{page_.get()};
  Replies replies_;
  iterations::Iterations iterations_{iterations::From::kHeader, nullptr};
  Pipeline pipeline_;
  CUstream made_ = nullptr;
  const ipc::Arguments<ipc::Op::cuMemsetD8Async> fill_{CUdeviceptr{ipc::kArena}, 1, 64, nullptr};
  const ipc::Arguments<ipc::Op::StreamCreate> create_{&made_, 0, 0, 1};
};

TEST_F(PipelineTest, MakingAnOutgoingSendsAndLocksNothing) {
  EndIteration();
  const Outgoing call = Fill();
  EXPECT_EQ(trace_, Trace());
  EXPECT_EQ(pipeline_.submitted(), 0u);
  EXPECT_EQ(iterations_.ordinal(), 0u);
  EXPECT_FALSE(call.operation.has_value());
  const bool is_free = pipeline_.lock().TryLock();
  if (is_free) pipeline_.lock().Unlock();
  EXPECT_TRUE(is_free);
}

TEST_F(PipelineTest, StagesComeInOrder) {
  memory_.wishes.outlived = {{ipc::kArena, 4096}};
  memory_.wishes.unneeded = {{ipc::kArena + 8192, 4096}};
  EndIteration();
  Outgoing call = Fill();
  call.prepare.decide = [](void* trace) {
    static_cast<Trace*>(trace)->push_back("prepare");
    return true;
  };
  call.prepare.argument = &trace_;
  ASSERT_TRUE(pipeline_.Send(&call));
  EXPECT_EQ(trace_, (Trace{"memory", "room", "commit LaneKeep, recorded", "room",
                           "commit ArenaUnmap", "unmapped", "room", "commit Boundary", "room",
                           "prepare", "encode", "commit cuMemsetD8Async"}));
  EXPECT_TRUE(call.operation.has_value() && call.boundary.has_value());
  EXPECT_EQ(pipeline_.submitted(), 4u);
  EXPECT_EQ(pipeline_.operations(), 1u);
  EXPECT_EQ(pipeline_.last_work(), 4u);
}

TEST_F(PipelineTest, WhatMakesAnObjectIsInTheLogBeforeTheWorkerSeesIt) {
  Outgoing call = Create();
  ASSERT_TRUE(pipeline_.Send(&call));
  EXPECT_EQ(trace_, (Trace{"room", "commit StreamCreate, recorded"}));
  EXPECT_NE(call.token, RebuildLog::kNoToken);
  // The note begins where the message ends.
  EXPECT_EQ(log_.At(ring_.position() - 1).size(), 0u);
  EXPECT_EQ(log_.At(ring_.position()).size(), 1u);
}

TEST_F(PipelineTest, OnlyCallsThatWantAReplyHaveANumber) {
  Outgoing queued = Create();
  ASSERT_TRUE(pipeline_.Send(&queued));
  EXPECT_EQ(ring_.last.flags, 0u);
  EXPECT_EQ(ring_.last.request, 0u);
  PendingReply reply;
  Outgoing asked = Create();
  asked.wants_reply = true;
  asked.reply = &reply;
  ASSERT_TRUE(pipeline_.Send(&asked));
  EXPECT_EQ(ring_.last.flags, ipc::kWantsReply);
  EXPECT_NE(ring_.last.request, 0u);
  EXPECT_EQ(ring_.last.request, reply.request);
  replies_.Forget(&reply);
}

TEST_F(PipelineTest, ARefusedCallLeavesNothingButTheBoundary) {
  EndIteration();
  Outgoing call = Fill();
  call.prepare.decide = [](void*) { return false; };
  EXPECT_FALSE(pipeline_.Send(&call));
  EXPECT_EQ(call.failure, CUDA_SUCCESS);
  EXPECT_EQ(call.encoded.refusal, ipc::Refusal::kBadHandle);
  EXPECT_EQ(trace_, (Trace{"memory", "room", "commit Boundary", "room"}));
}

TEST_F(PipelineTest, NumbersOfARefusedCallAreTakenBack) {
  static int taken = 0;
  const CUstream unknown = reinterpret_cast<CUstream>(uint64_t{12345});
  const ipc::Arguments<ipc::Op::cuMemsetD8Async> fill(CUdeviceptr{ipc::kArena}, 1, 64, unknown);
  Outgoing call(ipc::Op::cuMemsetD8Async, 0, fill.values());
  call.prepare.decide = [](void*) { return ++taken == 1; };
  call.prepare.undo = [] { --taken; };
  EXPECT_FALSE(pipeline_.Send(&call));
  EXPECT_EQ(call.encoded.refusal, ipc::Refusal::kBadHandle);
  EXPECT_EQ(taken, 0);
  EXPECT_EQ(pipeline_.submitted(), 0u);
}

TEST_F(PipelineTest, ALostSessionEndsTheWaitForRoom) {
  ring_.full = true;
  Outgoing call = Fill();
  EXPECT_FALSE(pipeline_.Send(&call));
  EXPECT_EQ(call.failure, CUDA_ERROR_MPS_RPC_FAILURE);
  EXPECT_EQ(pipeline_.submitted(), 0u);
}

TEST_F(PipelineTest, ANotedCallIsAnOperationThatIsNotSent) {
  EndIteration();
  Outgoing call = Fill();
  EXPECT_EQ(pipeline_.Note(&call), CUDA_SUCCESS);
  EXPECT_EQ(trace_, (Trace{"memory", "room", "commit Boundary", "room"}));
  EXPECT_EQ(pipeline_.operations(), 1u);
}

TEST_F(PipelineTest, ACapturedCallIsNoOperationAndAPartOfItsPiece) {
  EndIteration();
  Outgoing call = Fill();
  call.capture = 77;
  ASSERT_TRUE(pipeline_.Send(&call));
  EXPECT_EQ(trace_, (Trace{"room", "encode", "commit cuMemsetD8Async, recorded"}));
  EXPECT_EQ(pipeline_.operations(), 0u);
  EXPECT_EQ(iterations_.ordinal(), 0u);
}

// A launch with eight bytes of parameters.
class KnownMessageTest : public PipelineTest {
 protected:
  bool Encode(uint64_t parameter, KnownMessage* known) {
    const ipc::Arguments<ipc::Op::Launch> launch(
        static_cast<CUfunction>(
            ipc::ProgramValue(ipc::HandleKind::kFunction, ipc::HandleId::kFirst)),
        3, 1, 1, 64, 1, 1, 0, nullptr, nullptr, 0, &parameter, sizeof parameter);
    Outgoing call(ipc::Op::Launch, 1, launch.values());
    if (known != nullptr) known->Await(std::as_bytes(std::span(&parameter, 1)));
    call.learned = known;
    return pipeline_.Send(&call);
  }
  bool SendKnown(uint64_t parameter, const KnownMessage& known) {
    const auto write_end = [](void* argument, std::span<std::byte> room) {
      ASSERT_EQ(room.size(), sizeof(uint64_t));
      std::memcpy(room.data(), argument, room.size());
    };
    return pipeline_.SendKnown(ipc::Op::Launch, 1, known, write_end, &parameter) == CUDA_SUCCESS;
  }
};

TEST_F(KnownMessageTest, IsTheMessageThatItsArgumentsMake) {
  KnownMessage known;
  ASSERT_TRUE(Encode(7, &known));
  ASSERT_TRUE(known);
  ASSERT_TRUE(Encode(8, nullptr));
  const std::vector<std::byte> encoded = ring_.last_message;
  ASSERT_TRUE(SendKnown(8, known));
  EXPECT_EQ(ring_.last_message, encoded);
  EXPECT_EQ(pipeline_.operations(), 3u);
  EndIteration();
  ASSERT_TRUE(SendKnown(8, known));
  const std::vector<iterations::Op> operations = iterations_.LastIteration();
  ASSERT_EQ(operations.size(), 3u);
  EXPECT_EQ(operations[2].identity, operations[1].identity);
  EXPECT_EQ(operations[2].shape, operations[1].shape);
  EXPECT_NE(operations[2].identity, 0u);
  EXPECT_TRUE(known.operation().computes);
}

TEST_F(KnownMessageTest, EndsAnIterationAsAnyCall) {
  KnownMessage known;
  ASSERT_TRUE(Encode(7, &known));
  trace_.clear();
  EndIteration();
  ASSERT_TRUE(SendKnown(7, known));
  EXPECT_EQ(trace_, (Trace{"memory", "room", "commit Boundary", "room", "commit Launch"}));
}

TEST_F(KnownMessageTest, ARefusedCallIsNotLearned) {
  const ipc::Arguments<ipc::Op::Launch> launch(reinterpret_cast<CUfunction>(uint64_t{12345}), 3, 1,
                                               1, 64, 1, 1, 0, nullptr, nullptr, 0, nullptr, 0);
  Outgoing call(ipc::Op::Launch, 1, launch.values());
  KnownMessage known;
  call.learned = &known;
  EXPECT_FALSE(pipeline_.Send(&call));
  EXPECT_FALSE(known);
}

TEST_F(KnownMessageTest, OneThatDoesNotEndInItsEndIsNotLearned) {
  KnownMessage known;
  const std::byte message[40] = {}, other[8] = {std::byte{1}};
  known.Await(other);
  known.Learn(message, {});
  EXPECT_FALSE(known);
  const std::byte long_message[KnownMessage::kHeadBytesMax + 1] = {};
  known.Await({});
  known.Learn(long_message, {});
  EXPECT_FALSE(known);
  known.Learn(std::span(long_message).first(KnownMessage::kHeadBytesMax), {});
  EXPECT_TRUE(known);
}

// A session whose runs of calls are held back.
class HeldPipelineTest : public PipelineTest {
 protected:
  HeldPipelineTest() {
    std::unique_ptr<ipc::RingSender> ring =
        std::make_unique<ipc::RingSender>(&page_->to_worker, data_.get(), &page_->worker_doorbell);
    ipc::RingSender* const below = ring.get();
    chunks_ = std::make_unique<ChunkSender>(std::move(ring), below, std::span(area_));
    Pipeline::Ends ends = Ends(chunks_.get(), below);
    ends.chunks = chunks_.get();
    ends.replay.kind = ipc::ReplayMode::Kind::kAlways;
    held_.Open(ends);
    EXPECT_EQ(trace_, Trace{"freed waits"});
    for (int i = 0; i < 2; ++i) {
      Send(4);
      held_.Flush();
    }
    trace_.clear();
  }
  void Send(int calls) {
    for (int i = 0; i < calls; ++i) {
      Outgoing call = Fill();
      EXPECT_TRUE(held_.Send(&call));
    }
    std::erase(trace_, "encode");
  }

  std::vector<std::byte> area_ = std::vector<std::byte>(ipc::limits::kChunkAreaBytes);
  std::unique_ptr<ChunkSender> chunks_;
  Pipeline held_;
};

TEST_F(HeldPipelineTest, MemoryHearsOnceTheLastHeldCallIsSent) {
  Send(2);
  EXPECT_TRUE(held_.Holds());
  memory_.AwaitSending();
  Send(1);
  EXPECT_EQ(trace_, Trace());
  Send(1);
  EXPECT_FALSE(held_.Holds());
  EXPECT_EQ(trace_, Trace{"all sent"});
  held_.Flush();
  EXPECT_EQ(trace_, Trace{"all sent"});
}

TEST_F(HeldPipelineTest, AWaitHasHeldCallsSentAndMemoryHears) {
  Send(2);
  memory_.AwaitSending();
  held_.Flush();
  EXPECT_EQ(trace_, Trace{"all sent"});
}

}  // namespace
}  // namespace shim
