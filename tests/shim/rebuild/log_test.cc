#include "shim/rebuild/log.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "ipc/message.h"

namespace shim {
namespace {

using ipc::HandleKind;

constexpr uint64_t kNothingTaken = 0;

ObjectName Name(HandleKind kind, uint32_t id) { return {kind, static_cast<ipc::HandleId>(id)}; }

class RebuildLogTest : public ::testing::Test {
 protected:
  // Messages are 8 bytes long: the position after the n-th is n * 8.
  RebuildLog::Token Add(const std::string& text, ObjectName subject, uint64_t detail = 0,
                        ObjectName refers_to = {}) {
    Kept kept;
    kept.op = ipc::Op::Ping;
    kept.subject = subject;
    kept.detail = detail;
    kept.refers_to = refers_to;
    kept.message = {reinterpret_cast<const std::byte*>(text.data()), text.size()};
    return log_.Add(kept, position_ += 8);
  }
  void End(ObjectName object, uint64_t consumed = kNothingTaken) {
    log_.End(object, position_ += 8, consumed);
  }
  std::vector<std::string> At(uint64_t position) {
    std::vector<std::string> texts;
    for (const RebuildLog::Entry& entry : log_.At(position)) {
      texts.emplace_back(reinterpret_cast<const char*>(entry.message.data()), entry.message.size());
    }
    return texts;
  }

  using Texts = std::vector<std::string>;
  RebuildLog log_{{.message_bytes = 4096, .image_bytes = 100}};
  uint64_t position_ = 0;
  const ObjectName stream_ = Name(HandleKind::kStream, 3);
  const ObjectName module_ = Name(HandleKind::kModule, 3);
  const ObjectName function_ = Name(HandleKind::kFunction, 7);
  const ObjectName blas_ = Name(HandleKind::kBlas, 4);
};

TEST_F(RebuildLogTest, HoldsWhatLivesInTheOrderOfSending) {
  Add("module", module_);
  Add("stream", stream_);
  Add("function", function_, 0, module_);
  EXPECT_EQ(At(position_), (Texts{"module", "stream", "function"}));
  End(stream_);
  EXPECT_EQ(At(position_), (Texts{"module", "function"}));
  EXPECT_EQ(log_.size(), 2u);
}

TEST_F(RebuildLogTest, WhatRefersToAnObjectEndsWithIt) {
  Add("module", module_);
  Add("function", function_, 0, module_);
  Add("attribute", function_, 5);
  Add("blas", blas_);
  Add("stream", stream_);
  Add("set stream", blas_, 1, stream_);
  End(stream_);
  EXPECT_EQ(At(position_), (Texts{"module", "function", "attribute", "blas"}));
  End(function_);
  End(module_);
  EXPECT_EQ(At(position_), (Texts{"blas"}));
}

TEST_F(RebuildLogTest, ASettingReplacesTheOneBefore) {
  Add("blas", blas_);
  Add("math 1", blas_, 1);
  Add("mode", blas_, 2);
  Add("math 2", blas_, 1);
  EXPECT_EQ(At(position_), (Texts{"blas", "mode", "math 2"}));
  Add("range", {}, 4096);
  Add("range again", {}, 4096);
  EXPECT_EQ(At(position_), (Texts{"blas", "mode", "math 2", "range again"}));
  log_.EndDetail({}, 4096, position_ += 8, kNothingTaken);
  EXPECT_EQ(At(position_), (Texts{"blas", "mode", "math 2"}));
}

TEST_F(RebuildLogTest, APieceOfAGraphHasManySettings) {
  const ObjectName piece = Name(HandleKind::kGraphExec, 3), other = Name(HandleKind::kGraphExec, 4);
  Add("piece", piece);
  Add("node 0", piece, 100);
  Add("node 1", piece, 101);
  Add("other", other);
  Add("its node", other, 100);
  Add("node 0 again", piece, 100);
  EXPECT_EQ(At(position_), (Texts{"piece", "node 1", "other", "its node", "node 0 again"}));
  End(piece);
  EXPECT_EQ(At(position_), (Texts{"other", "its node"}));
  Add("a piece of the same name", piece);
  EXPECT_FALSE(log_.HasDetail(piece, 101));
  EXPECT_TRUE(log_.HasDetail(other, 100));
}

TEST_F(RebuildLogTest, KnowsASettingThatChangesNothing) {
  const auto kept = [this](const std::string& text) {
    Kept setting;
    setting.subject = blas_;
    setting.detail = 1;
    setting.message = {reinterpret_cast<const std::byte*>(text.data()), text.size()};
    return setting;
  };
  const std::string header(sizeof(ipc::MessageHeader), 'a'), other(sizeof(ipc::MessageHeader), 'b');
  const std::string math = header + "math 1", same = other + "math 1", another = header + "math 2";
  Add("blas", blas_);
  EXPECT_FALSE(log_.HasSame(kept(math)));
  Add(math, blas_, 1);
  EXPECT_TRUE(log_.HasSame(kept(math)));
  EXPECT_TRUE(log_.HasSame(kept(same)));  // another thread's
  EXPECT_FALSE(log_.HasSame(kept(another)));
}

TEST_F(RebuildLogTest, SeesTheStateAtWhichTheWorkerStopped) {
  Add("stream", stream_);      // 8
  Add("blas", blas_);          // 16
  Add("math 1", blas_, 1);     // 24
  Add("math 2", blas_, 1);     // 32
  End(stream_);                // 40
  Add("new stream", stream_);  // 48
  EXPECT_EQ(At(0), Texts{});
  EXPECT_EQ(At(16), (Texts{"stream", "blas"}));
  EXPECT_EQ(At(24), (Texts{"stream", "blas", "math 1"}));
  EXPECT_EQ(At(32), (Texts{"stream", "blas", "math 2"}));
  EXPECT_EQ(At(40), (Texts{"blas", "math 2"}));
  EXPECT_EQ(At(48), (Texts{"blas", "math 2", "new stream"}));
}

TEST_F(RebuildLogTest, WhatLiesBehindMovesWithItsMessages) {
  Add("stream", stream_);      // 8
  End(stream_);                // 16
  Add("new stream", stream_);  // 24
  // Taken up to 8; 100 bytes of replay came before the rest.
  log_.Shift(8, 100);
  EXPECT_EQ(At(8), (Texts{"stream"}));
  EXPECT_EQ(At(115), (Texts{"stream"}));
  EXPECT_EQ(At(116), (Texts{}));
  EXPECT_EQ(At(124), (Texts{"new stream"}));
}

TEST_F(RebuildLogTest, ForgetsWhatEndedOnceItIsTaken) {
  // Names come again and again; only what is under way may stay.
  for (int i = 0; i < 10'000; ++i) {
    Add("a stream of many, with some bytes", stream_);
    End(stream_, position_);
  }
  EXPECT_FALSE(log_.overflowed());
  EXPECT_EQ(log_.size(), 0u);
  EXPECT_EQ(At(position_), Texts{});
}

TEST_F(RebuildLogTest, AFailedCallLeavesNothing) {
  const RebuildLog::Token token = Add("module", module_);
  EXPECT_EQ(At(position_).size(), 1u);
  log_.Drop(token);
  EXPECT_EQ(At(position_), Texts{});
  Add("another", module_);
  EXPECT_EQ(At(position_), Texts{"another"});
}

TEST_F(RebuildLogTest, TheEndOfAllObjectsKeepsTheSession) {
  Add("range", {}, 4096);
  Add("module", module_);
  Add("function", function_, 0, module_);
  log_.EndObjects(position_ += 8, kNothingTaken);
  EXPECT_EQ(At(position_), Texts{"range"});
  EXPECT_EQ(At(position_ - 8), (Texts{"range", "module", "function"}));
}

TEST_F(RebuildLogTest, LongMessagesAreKeptWhole) {
  const std::string text(1000, 'x');
  Add(text, module_);
  EXPECT_EQ(At(position_), Texts{text});
}

TEST_F(RebuildLogTest, SaysWhenItIsTooLong) {
  for (uint32_t i = 0; i < 100 && !log_.overflowed(); ++i) {
    Add(std::string(100, 'x'), Name(HandleKind::kEvent, 3 + i));
  }
  EXPECT_TRUE(log_.overflowed());
}

TEST_F(RebuildLogTest, CountsTheBytesOfImages) {
  Kept kept;
  kept.subject = module_;
  kept.image = std::make_shared<const ModuleBytes>(60);
  log_.Add(kept, position_ += 8);
  EXPECT_FALSE(log_.overflowed());
  kept.subject = Name(HandleKind::kModule, 4);
  log_.Add(kept, position_ += 8);
  EXPECT_TRUE(log_.overflowed());
}

}  // namespace
}  // namespace shim
