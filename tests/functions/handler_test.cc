#include "functions/serving/handler.h"

#include <gtest/gtest.h>

#include "functions/serving/frames.h"

namespace functions {
namespace {

// Puts the second input before the first.
class Swapping final : public Runner {
 public:
  absl::Status Run(std::span<const std::span<const std::byte>> inputs,
                   std::vector<Bytes>* outputs) override {
    if (lost) return absl::InternalError("the worker is gone");
    outputs->assign(1, Bytes(inputs[1].begin(), inputs[1].end()));
    outputs->front().insert(outputs->front().end(), inputs[0].begin(), inputs[0].end());
    return absl::OkStatus();
  }
  bool lost = false;
};

class HandlerTest : public ::testing::Test {
 protected:
  static Manifest TheManifest() {
    return {{{"a", ElementType::kU8, {1}}, {"b", ElementType::kU8, {2}}},
            {{"c", ElementType::kU8, {3}}}};
  }
  absl::Status Ask(const Request& request) {
    const Bytes frame = EncodeRequest(request);
    const absl::Status status =
        handler_.AnswerUntrusted(std::span(frame).subspan(4), &answer_frame_);
    if (!status.ok()) return status;
    EXPECT_TRUE(DecodeAnswerUntrusted(std::span(answer_frame_).subspan(4), &answer_));
    return status;
  }
  TensorView A() { return {{"a", ElementType::kU8, {1}}, std::span(bytes_).first(1)}; }
  TensorView B() { return {{"b", ElementType::kU8, {2}}, std::span(bytes_).subspan(1, 2)}; }

  const Bytes bytes_ = {std::byte{1}, std::byte{2}, std::byte{3}};
  Swapping runner_;
  Handler handler_{TheManifest(), &runner_};
  Bytes answer_frame_;
  Answer answer_;
};

TEST_F(HandlerTest, InputsAreFoundByNameInAnyOrder) {
  ASSERT_TRUE(Ask({RequestKind::kCall, {B(), A()}}).ok());
  ASSERT_EQ(answer_.status, AnswerStatus::kDone);
  const std::span<const std::byte> c = answer_.tensors[0].bytes;
  EXPECT_EQ(Bytes(c.begin(), c.end()), (Bytes{std::byte{2}, std::byte{3}, std::byte{1}}));
  EXPECT_EQ(answer_.tensors[0].type.name, "c");
}

TEST_F(HandlerTest, WrongInputsAreRefusedWithASentence) {
  ASSERT_TRUE(Ask({RequestKind::kCall, {A()}}).ok());
  EXPECT_NE(answer_.sentence.find("input b, u8 [2], is missing"), std::string::npos);
  ASSERT_TRUE(Ask({RequestKind::kCall, {A(), A(), B()}}).ok());
  EXPECT_NE(answer_.sentence.find("twice"), std::string::npos);
  TensorView wrong = B();
  wrong.type.shape = {2, 1};
  ASSERT_TRUE(Ask({RequestKind::kCall, {A(), wrong}}).ok());
  EXPECT_NE(answer_.sentence.find("input b is u8 [2], not u8 [2, 1]"), std::string::npos);
  wrong.type.name = "d";
  ASSERT_TRUE(Ask({RequestKind::kCall, {A(), B(), wrong}}).ok());
  EXPECT_EQ(answer_.status, AnswerStatus::kRefused);
}

TEST_F(HandlerTest, TheManifestIsTold) {
  ASSERT_TRUE(Ask({RequestKind::kDescribe, {}}).ok());
  const std::span<const std::byte> text = answer_.tensors[0].bytes;
  Manifest told;
  std::string why;
  ASSERT_TRUE(ParseManifestUntrusted({reinterpret_cast<const char*>(text.data()), text.size()},
                                     &told, &why));
  EXPECT_EQ(told, TheManifest());
}

TEST_F(HandlerTest, ALostRunnerIsTheCallersToReplace) {
  runner_.lost = true;
  EXPECT_FALSE(Ask({RequestKind::kCall, {A(), B()}}).ok());
}

}  // namespace
}  // namespace functions
