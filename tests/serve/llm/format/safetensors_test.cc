#include "serve/llm/format/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tests/harness/seed.h"
#include "tests/serve/llm/format/safetensors_writer.h"

namespace serve::llm {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string WhyNot(const std::string& file) {
  return std::string(DecodeSafetensorsUntrusted(AsBytes(file)).status().message());
}

std::string WhyNotHeader(const std::string& header, const std::string& data = "") {
  return WhyNot(SafetensorsWriter::Of(header, data));
}

SafetensorsWriter TwoSafetensors() {
  SafetensorsWriter writer;
  writer.Member(R"("__metadata__":{"format":"pt"})")
      .Tensor("a", "F32", {2, 4}, std::string(32, 'a'))
      .Tensor("b", "BF16", {3}, std::string(6, 'b'));
  return writer;
}

TEST(SafetensorsTest, TensorsLieWhereTheHeaderSays) {
  const std::string file = TwoSafetensors().File();
  const absl::StatusOr<TensorSet> tensors = DecodeSafetensorsUntrusted(AsBytes(file));
  ASSERT_TRUE(tensors.ok()) << tensors.status();
  ASSERT_EQ(tensors->all().size(), 2u);
  const Tensor* const a = tensors->Find("a");
  const Tensor* const b = tensors->Find("b");
  ASSERT_NE(a, nullptr);
  ASSERT_NE(b, nullptr);
  EXPECT_EQ(a->type->name, "F32");
  EXPECT_THAT(a->shape, ElementsAre(4, 2));
  EXPECT_EQ(a->bytes.size(), 32u);
  EXPECT_EQ(a->bytes.back(), std::byte{'a'});
  EXPECT_EQ(b->bytes.size(), 6u);
  EXPECT_EQ(b->bytes.front(), std::byte{'b'});
  EXPECT_EQ(tensors->Find("__metadata__"), nullptr);
}

TEST(SafetensorsTest, OneElementAndNoneArePermitted) {
  SafetensorsWriter writer;
  writer.Tensor("none", "F32", {0, 7}, "").Tensor("one", "F16", {}, "xx");
  const std::string file = writer.File();
  const absl::StatusOr<TensorSet> tensors = DecodeSafetensorsUntrusted(AsBytes(file));
  ASSERT_TRUE(tensors.ok()) << tensors.status();
  EXPECT_EQ(tensors->Find("none")->Elements(), 0u);
  EXPECT_EQ(tensors->Find("one")->Elements(), 1u);
  EXPECT_EQ(WhyNotHeader("{}   "), "");
}

TEST(SafetensorsTest, AFileThatEndsEarlyIsRefusedWhereverItEnds) {
  const std::string file = TwoSafetensors().File();
  for (size_t size = 0; size < file.size(); ++size) {
    ASSERT_NE(WhyNot(file.substr(0, size)), "") << size;
  }
  EXPECT_THAT(WhyNot(file.substr(0, 7)), HasSubstr("cut short in its header"));
  EXPECT_THAT(WhyNot(file.substr(0, 20)), HasSubstr("cut short in its header"));
  EXPECT_THAT(WhyNot(file.substr(0, file.size() - 1)), HasSubstr("cut short in its tensor b"));
}

TEST(SafetensorsTest, OtherFilesAreRefused) {
  EXPECT_THAT(WhyNot("a text that is no model"), HasSubstr("is no safetensors file"));
  const uint64_t long_header = kSafetensorsHeaderBytesMax + 1;
  EXPECT_THAT(WhyNot(GgufWriter::Raw(long_header)), HasSubstr("over 32 MiB"));
  EXPECT_THAT(WhyNotHeader("[1]"), HasSubstr("list is where none belongs"));
  EXPECT_THAT(WhyNotHeader("1"), HasSubstr("number is where none belongs"));
  EXPECT_THAT(WhyNotHeader("{} {}"), HasSubstr("no JSON"));
  EXPECT_THAT(WhyNotHeader("{\"a\xff\":{}}"), HasSubstr("no JSON"));
  EXPECT_THAT(WhyNotHeader(""), HasSubstr("no JSON"));
}

TEST(SafetensorsTest, AHeaderHasItsFormAlone) {
  const auto of_a = [](const std::string& inner) { return WhyNotHeader("{\"a\":" + inner + "}"); };
  EXPECT_THAT(of_a("null"), HasSubstr("null"));
  EXPECT_THAT(of_a("true"), HasSubstr("truth value"));
  EXPECT_THAT(of_a("\"t\""), HasSubstr("text is where none belongs"));
  EXPECT_THAT(of_a("[]"), HasSubstr("list is where none belongs"));
  EXPECT_THAT(of_a("{}"), HasSubstr("tensor a is without a dtype"));
  EXPECT_THAT(of_a(R"({"dtype":"F32","shape":[]})"), HasSubstr("without a dtype"));
  EXPECT_THAT(of_a(R"({"dtype":"F32","shape":[],"data_offsets":[0]})"), HasSubstr("two data_off"));
  EXPECT_THAT(of_a(R"({"dtype":"F32","shape":[],"data_offsets":[0,1,2]})"), HasSubstr("too many"));
  EXPECT_THAT(of_a(R"({"dtype":"F32","shape":[],"more":1})"), HasSubstr("the field more"));
  EXPECT_THAT(of_a(R"({"dtype":"F32","dtype":"F32"})"), HasSubstr("two fields dtype"));
  EXPECT_THAT(of_a(R"({"dtype":1})"), HasSubstr("number is where none belongs"));
  EXPECT_THAT(of_a(R"({"dtype":{}})"), HasSubstr("object is where none belongs"));
  EXPECT_THAT(of_a(R"({"shape":[[]]})"), HasSubstr("list is where none belongs"));
  EXPECT_THAT(of_a(R"({"shape":["1"]})"), HasSubstr("text is where none belongs"));
  EXPECT_THAT(of_a(R"({"shape":[-1]})"), HasSubstr("negative"));
  EXPECT_THAT(of_a(R"({"shape":[1.0]})"), HasSubstr("not whole"));
  EXPECT_THAT(of_a(R"({"shape":[1,1,1,1,1,1,1,1,1]})"), HasSubstr("too many sides"));
  EXPECT_THAT(WhyNotHeader(R"({"__metadata__":{"a":{}}})"), HasSubstr("object"));
  EXPECT_THAT(WhyNotHeader(R"({"":{}})"), HasSubstr("empty or too long"));
  EXPECT_THAT(WhyNotHeader("{\"" + std::string(257, 'n') + "\":{}}"), HasSubstr("too long"));
  EXPECT_THAT(WhyNotHeader(std::string(1000000, '[')), HasSubstr("list is where none belongs"));
}

TEST(SafetensorsTest, NamesAreThereOnce) {
  SafetensorsWriter writer = TwoSafetensors();
  writer.Tensor("a", "F32", {1}, "1234");
  EXPECT_THAT(WhyNot(writer.File()), HasSubstr("has a twice"));
}

TEST(SafetensorsTest, EachByteIsOfOneTensor) {
  const auto why = [](uint64_t begin, uint64_t end, const std::string& type = "F32") {
    SafetensorsWriter writer = TwoSafetensors();
    return WhyNot(writer.Row("c", type, {1}, begin, end).Data("more").File());
  };
  EXPECT_EQ(why(38, 42), "");
  EXPECT_THAT(why(36, 40), HasSubstr("tensor c overlaps"));
  EXPECT_THAT(why(0, 4), HasSubstr("overlaps"));
  EXPECT_THAT(why(40, 42, "F16"), HasSubstr("bytes before tensor c are of no tensor"));
  EXPECT_THAT(why(38, 40, "F16"), HasSubstr("2 bytes at its end"));
  EXPECT_THAT(why(39, 43), HasSubstr("cut short in its tensor c"));
  EXPECT_THAT(why(42, 38), HasSubstr("ends before it begins"));
  EXPECT_THAT(why(UINT64_MAX - 3, UINT64_MAX), HasSubstr("cut short"));
}

TEST(SafetensorsTest, BytesAreThoseOfTheShape) {
  const auto why = [](const std::vector<uint64_t>& shape, const std::string& type, size_t bytes) {
    return WhyNot(SafetensorsWriter().Tensor("a", type, shape, std::string(bytes, 'x')).File());
  };
  EXPECT_EQ(why({2, 3}, "F32", 24), "");
  EXPECT_EQ(why({3}, "BOOL", 3), "");
  EXPECT_EQ(why({3, 2}, "F4", 3), "");
  EXPECT_THAT(why({3}, "F4", 2), HasSubstr("not those of its shape"));
  EXPECT_THAT(why({2, 3}, "F32", 20), HasSubstr("20 bytes, which are not those of its shape"));
  EXPECT_THAT(why({2, 3}, "F16", 24), HasSubstr("not those of its shape"));
  EXPECT_THAT(why({uint64_t{1} << 32, uint64_t{1} << 32}, "F32", 0), HasSubstr("overflows"));
  EXPECT_THAT(why({uint64_t{1} << 62}, "F32", 0), HasSubstr("overflows"));
  EXPECT_THAT(why({1}, "Q4_0", 18), HasSubstr("of type Q4_0, which is not known"));
}

// Whatever one byte becomes: where a file is read, each byte belongs to one tensor.
TEST(SafetensorsTest, AnyByteMayBeWrong) {
  const std::string good = TwoSafetensors().File();
  std::mt19937_64 random(harness::Seed());
  for (size_t at = 0; at < good.size() - 38; ++at) {
    std::string file = good;
    file[at] = static_cast<char>(random());
    const absl::StatusOr<TensorSet> tensors = DecodeSafetensorsUntrusted(AsBytes(file));
    if (!tensors.ok()) continue;
    size_t bytes = 0;
    for (const Tensor& tensor : tensors->all()) bytes += tensor.bytes.size();
    ASSERT_EQ(bytes, 38u) << at;
  }
}

}  // namespace
}  // namespace serve::llm
