// Properties of the codec that hold for every row of every table, over random calls.
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "ipc/codec_client.h"
#include "ipc/codec_worker.h"
#include "ipc/dispatch.h"
#include "tests/harness/seed.h"
#include "tests/ipc/calls/fakes.h"
#include "tests/ipc/calls/random_call.h"

namespace ipc {
namespace {

std::vector<Op> RemoteOps() {
  std::vector<Op> ops;
  for (size_t i = 0; i < kLibraries; ++i) {
    const Library library = static_cast<Library>(i);
    for (size_t j = 0; j < RowsOf(library).size(); ++j) {
      if (RowsOf(library)[j].remote) ops.push_back(OpAt(library, j));
    }
  }
  return ops;
}

uint32_t ServeRandomCall(void* target, const Slot* slots) {
  static_cast<RandomCall*>(target)->Serve(slots);
  return 0;
}

uint32_t CountCall(void* target, const Slot*) {
  ++*static_cast<int*>(target);
  return 0;
}

class CodecTest : public testing::Test {
 protected:
  // Encodes a random call of `op` into request_; what it took.
  Encoded Encode(Op op, const RandomCall& call, bool scalars_on_device) {
    request_.assign(kBodyBytesMax / 8 + 1, 0);
    caller_.scalars_on_device = scalars_on_device;
    Writer writer(
        {reinterpret_cast<std::byte*>(request_.data()), RequestBytesMax(op, call.values())});
    const Encoded encoded = EncodeRequest(op, call.values(), caller_, &writer);
    EXPECT_EQ(encoded.refusal, Refusal::kNone) << RowOf(op).name;
    bytes_ = writer.size();
    caller_.gone.clear();
    return encoded;
  }
  std::span<const std::byte> Request() const {
    return {reinterpret_cast<const std::byte*>(request_.data()), bytes_};
  }

  std::mt19937_64 random_{harness::Seed()};
  FakeCaller caller_;
  FakeSession session_;
  std::vector<uint64_t> request_;
  size_t bytes_ = 0;
  std::vector<std::byte> reply_ = std::vector<std::byte>(kBodyBytesMax);
};

TEST_F(CodecTest, WhatTheProgramPassesReachesTheDriverAndComesBack) {
  for (const Op op : RemoteOps()) {
    for (int round = 0; round < 16; ++round) {
      SCOPED_TRACE(RowOf(op).name);
      const bool on_device = round % 2 == 0;
      RandomCall call(op, random_, on_device);
      const Encoded encoded = Encode(op, call, on_device);
      Writer reply(reply_);
      const Served served =
          ServeUntrusted(op, Request(), &ServeRandomCall, &call, session_, &reply);
      ASSERT_EQ(served.outcome, Outcome::kReplied);
      ASSERT_EQ(served.status, 0u);
      uint32_t status = 1;
      ASSERT_TRUE(
          TakeReply(op, call.values(), encoded, {reply_.data(), reply.size()}, caller_, &status));
      ASSERT_EQ(status, 0u);
      call.CheckReply();
      for (size_t i = 0; i < encoded.new_names; ++i) {
        EXPECT_EQ(*encoded.names[i].out, encoded.names[i].value);
        EXPECT_TRUE(session_.bound.contains({encoded.names[i].kind, encoded.names[i].id}));
      }
    }
  }
}

TEST_F(CodecTest, EveryTruncationIsRefused) {
  for (const Op op : RemoteOps()) {
    RandomCall call(op, random_, false);
    Encode(op, call, false);
    for (size_t n = 0; n < bytes_; ++n) {
      int calls = 0;
      Writer reply(reply_);
      const Served served =
          ServeUntrusted(op, Request().first(n), &CountCall, &calls, session_, &reply);
      EXPECT_EQ(served.outcome, Outcome::kMalformed) << RowOf(op).name << " cut to " << n;
      EXPECT_EQ(calls, 0);
    }
  }
}

TEST_F(CodecTest, BytesTooManyAreRefused) {
  for (const Op op : RemoteOps()) {
    RandomCall call(op, random_, false);
    Encode(op, call, false);
    ++bytes_;
    int calls = 0;
    Writer reply(reply_);
    EXPECT_EQ(ServeUntrusted(op, Request(), &CountCall, &calls, session_, &reply).outcome,
              Outcome::kMalformed)
        << RowOf(op).name;
    EXPECT_EQ(calls, 0);
  }
}

TEST_F(CodecTest, TruncatedRepliesAreRefused) {
  for (const Op op : RemoteOps()) {
    RandomCall call(op, random_, false);
    const Encoded encoded = Encode(op, call, false);
    Writer reply(reply_);
    ServeUntrusted(op, Request(), &ServeRandomCall, &call, session_, &reply);
    for (size_t n = 0; n < reply.size(); ++n) {
      uint32_t status = 0;
      EXPECT_FALSE(TakeReply(op, call.values(), encoded, {reply_.data(), n}, caller_, &status))
          << RowOf(op).name;
    }
  }
}

// Whatever bytes arrive: no crash, no write past a buffer (the sanitizer builds tell), a defined
// outcome.
TEST_F(CodecTest, AnyBytesHaveADefinedOutcome) {
  const Targets targets{&NullDriver(), &NullCublas(), &NullCublasLt(), nullptr};
  for (const Op op : RemoteOps()) {
    for (int round = 0; round < 64; ++round) {
      RandomCall call(op, random_, false);
      Encode(op, call, false);
      for (int flips = 1 + random_() % 4; flips > 0 && bytes_ > 0; --flips) {
        reinterpret_cast<uint8_t*>(request_.data())[random_() % bytes_] ^= 1 << random_() % 8;
      }
      Writer reply(reply_);
      const Served served =
          DispatchUntrusted(static_cast<uint16_t>(op), Request(), targets, session_, &reply);
      if (served.outcome == Outcome::kReplied) {
        EXPECT_GE(reply.size(), sizeof(uint32_t));
      }
    }
  }
}

TEST_F(CodecTest, RequestBytesMaxIsEnough) {
  for (const Op op : RemoteOps()) {
    RandomCall call(op, random_, false);
    Encode(op, call, false);
    EXPECT_LE(bytes_, RequestBytesMax(op, call.values())) << RowOf(op).name;
  }
}

}  // namespace
}  // namespace ipc
