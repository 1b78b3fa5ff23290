#include "serve/llm/format/gguf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "tests/harness/seed.h"
#include "tests/serve/llm/format/gguf_writer.h"

namespace serve::llm {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr uint32_t kF32 = 0;
constexpr uint32_t kQ4_0 = 2;

// Two tensors of 32 bytes each.
GgufWriter TwoTensors() {
  GgufWriter writer;
  writer.Tensor("a", {4, 2}, kF32, 0).Tensor("b", {8}, kF32, 32).Data(std::string(64, 'x'));
  return writer;
}

TEST(GgufTest, ValuesAreReadAsTheyWereWritten) {
  const std::string file = GgufWriter(2)
                               .Number("u", 7)
                               .Key("negative", GgufType::kInt8, GgufWriter::Raw<int8_t>(-3))
                               .Key("positive", GgufType::kInt64, GgufWriter::Raw<int64_t>(3))
                               .Float("f", 0.5f)
                               .Key("yes", GgufType::kBool, "\1")
                               .Word("t", "text")
                               .Words("ts", {"a", "", "ccc"})
                               .Numbers("ns", {1, -2})
                               .File();
  const absl::StatusOr<Gguf> gguf = DecodeGgufUntrusted(AsBytes(file));
  ASSERT_TRUE(gguf.ok()) << gguf.status();
  EXPECT_EQ(gguf->version(), 2u);
  EXPECT_EQ(gguf->Unsigned("u"), 7u);
  EXPECT_EQ(gguf->Unsigned("positive"), 3u);
  EXPECT_EQ(gguf->Unsigned("negative"), std::nullopt);
  EXPECT_EQ(gguf->Number("negative"), -3.0);
  EXPECT_EQ(gguf->Number("f"), 0.5);
  EXPECT_EQ(gguf->Bool("yes"), true);
  EXPECT_EQ(gguf->Text("t"), "text");
  EXPECT_THAT(*gguf->Texts("ts"), ElementsAre("a", "", "ccc"));
  EXPECT_THAT(*gguf->Integers("ns"), ElementsAre(1, -2));
}

TEST(GgufTest, AValueOfAnotherKindIsNothing) {
  const std::string file = GgufWriter().Number("u", 7).Word("t", "text").Words("ts", {}).File();
  const absl::StatusOr<Gguf> gguf = DecodeGgufUntrusted(AsBytes(file));
  ASSERT_TRUE(gguf.ok()) << gguf.status();
  EXPECT_EQ(gguf->Text("u"), std::nullopt);
  EXPECT_EQ(gguf->Bool("u"), std::nullopt);
  EXPECT_EQ(gguf->Number("t"), std::nullopt);
  EXPECT_EQ(gguf->Integers("ts"), std::nullopt);
  EXPECT_EQ(gguf->Texts("t"), std::nullopt);
  EXPECT_EQ(gguf->Unsigned("absent"), std::nullopt);
  EXPECT_FALSE(gguf->Has("absent"));
}

TEST(GgufTest, TensorsLieWhereTheTableSays) {
  const std::string bytes = std::string(32, 'a') + std::string(18, 'b');
  const std::string file =
      GgufWriter().Tensor("q", {32}, kQ4_0, 32).Tensor("f", {4, 2}, kF32, 0).Data(bytes).File();
  const absl::StatusOr<Gguf> gguf = DecodeGgufUntrusted(AsBytes(file));
  ASSERT_TRUE(gguf.ok()) << gguf.status();
  ASSERT_EQ(gguf->tensors().all().size(), 2u);
  EXPECT_EQ(gguf->tensors().all()[0].name, "q");
  const Tensor* const q = gguf->tensors().Find("q");
  const Tensor* const f = gguf->tensors().Find("f");
  EXPECT_EQ(q->type->name, "Q4_0");
  EXPECT_EQ(q->bytes.size(), 18u);
  EXPECT_EQ(q->bytes.front(), std::byte{'b'});
  EXPECT_THAT(f->shape, ElementsAre(4, 2));
  EXPECT_EQ(f->Elements(), 8u);
  EXPECT_EQ(f->bytes.size(), 32u);
  EXPECT_EQ(gguf->tensors().Find("absent"), nullptr);
}

TEST(GgufTest, OtherFilesAreRefused) {
  EXPECT_THAT(WhyRefused(""), HasSubstr("is no GGUF file"));
  EXPECT_THAT(WhyRefused("no model at all"), HasSubstr("is no GGUF file"));
  EXPECT_THAT(WhyRefused(GgufWriter(1).File()), HasSubstr("version 1"));
  EXPECT_THAT(WhyRefused(GgufWriter(4).File()), HasSubstr("version 4"));
  EXPECT_THAT(WhyRefused(GgufWriter(__builtin_bswap32(3)).File()), HasSubstr("big-endian"));
}

TEST(GgufTest, AFileThatEndsEarlyIsRefusedWhereverItEnds) {
  const std::string file = TwoTensors().Number("n", 1).Words("t", {"a", "b"}).File();
  ASSERT_EQ(WhyRefused(file), "");
  for (size_t size = 0; size < file.size(); ++size) {
    ASSERT_NE(WhyRefused(file.substr(0, size)), "") << size;
  }
  EXPECT_THAT(WhyRefused(file.substr(0, file.size() - 1)), HasSubstr("cut short in its tensor b"));
}

TEST(GgufTest, CountsBeyondTheFileAskForNoMemory) {
  const std::string magic = "GGUF" + GgufWriter::Raw<uint32_t>(3);
  const std::string many = GgufWriter::Raw<uint64_t>(1 << 16), none = GgufWriter::Raw<uint64_t>(0);
  const std::string too_many = GgufWriter::Raw<uint64_t>(UINT64_MAX);
  EXPECT_THAT(WhyRefused(magic + many + none), HasSubstr("cut short in its header"));
  EXPECT_THAT(WhyRefused(magic + none + many), HasSubstr("cut short in its header"));
  EXPECT_THAT(WhyRefused(magic + too_many + none), HasSubstr("claims"));
  EXPECT_THAT(WhyRefused(magic + none + too_many), HasSubstr("claims"));
}

TEST(GgufTest, AnArrayLongerThanTheFileIsRefused) {
  for (const GgufType type : {GgufType::kUint8, GgufType::kFloat64, GgufType::kText}) {
    for (const uint64_t count : {uint64_t{100}, uint64_t{1} << 61, UINT64_MAX}) {
      const std::string array = GgufWriter::Raw(static_cast<uint32_t>(type)) +
                                GgufWriter::Raw(count) + std::string(16, '\0');
      EXPECT_THAT(WhyRefused(GgufWriter().Key("k", GgufType::kArray, array).File()),
                  HasSubstr("cut short in its metadata"));
    }
  }
}

TEST(GgufTest, TypesOfValuesThatAreNoneAreRefused) {
  EXPECT_THAT(WhyRefused(GgufWriter().Key("k", static_cast<GgufType>(13), "").File() + "12345678"),
              HasSubstr("value of type 13"));
  const std::string nested =
      GgufWriter::Raw(static_cast<uint32_t>(GgufType::kArray)) + GgufWriter::Raw<uint64_t>(0);
  EXPECT_THAT(WhyRefused(GgufWriter().Key("k", GgufType::kArray, nested).File()),
              HasSubstr("array of values of type 9"));
}

TEST(GgufTest, NamesAreThereOnce) {
  EXPECT_THAT(WhyRefused(GgufWriter().Number("k", 1).Number("k", 2).File()),
              HasSubstr("key k twice"));
  EXPECT_THAT(WhyRefused(TwoTensors().Tensor("a", {8}, kF32, 64).Data(std::string(32, 'x')).File()),
              HasSubstr("tensor a twice"));
  EXPECT_THAT(WhyRefused(GgufWriter().Number("", 1).File()), HasSubstr("empty or too long"));
  EXPECT_THAT(WhyRefused(GgufWriter().Tensor(std::string(65, 'n'), {8}, kF32, 0).File()),
              HasSubstr("empty or too long"));
}

TEST(GgufTest, TensorsThatOverlapAreRefused) {
  EXPECT_THAT(WhyRefused(TwoTensors().Tensor("c", {8}, kF32, 32).File()), HasSubstr("overlap"));
  EXPECT_THAT(WhyRefused(GgufWriter()
                             .Tensor("long", {16}, kF32, 0)
                             .Tensor("inside", {8}, kF32, 32)
                             .Data(std::string(96, 'x'))
                             .File()),
              HasSubstr("tensors long and inside overlap"));
}

TEST(GgufTest, OffsetsAreAlignedAndWithinTheFile) {
  const std::string data(64, 'x');
  EXPECT_THAT(WhyRefused(GgufWriter().Tensor("a", {4}, kF32, 16).Data(data).File()),
              HasSubstr("multiple of 32"));
  EXPECT_EQ(WhyRefused(GgufWriter()
                           .Number("general.alignment", 16)
                           .Tensor("a", {4}, kF32, 16)
                           .Data(data)
                           .File(16)),
            "");
  // The last offset and the tensor's 64 bytes are 32 when they overflow.
  for (const uint64_t offset : {uint64_t{64}, uint64_t{1} << 63, UINT64_MAX - 31}) {
    EXPECT_THAT(WhyRefused(GgufWriter().Tensor("a", {16}, kF32, offset).Data(data).File()),
                HasSubstr("cut short in its tensor a"));
  }
  for (const uint32_t alignment : {0u, 4u, 24u, 1u << 17}) {
    EXPECT_THAT(WhyRefused(GgufWriter().Number("general.alignment", alignment).File()),
                HasSubstr("power of two"));
  }
}

TEST(GgufTest, ShapesThatMakeNoSenseAreRefused) {
  const auto why = [](const std::vector<uint64_t>& shape, uint32_t type) {
    return WhyRefused(GgufWriter().Tensor("a", shape, type, 0).Data(std::string(64, 'x')).File());
  };
  EXPECT_THAT(why({0}, kF32), HasSubstr("side of 0"));
  EXPECT_THAT(why({4, 0}, kF32), HasSubstr("side of 0"));
  EXPECT_THAT(why({}, kF32), HasSubstr("0 sides"));
  EXPECT_THAT(why({1, 1, 1, 1, 1}, kF32), HasSubstr("5 sides"));
  EXPECT_THAT(why({uint64_t{1} << 32, uint64_t{1} << 32}, kF32), HasSubstr("overflows"));
  EXPECT_THAT(why({uint64_t{1} << 61}, kF32), HasSubstr("overflows"));
  EXPECT_THAT(why({uint64_t{1} << 40, 8}, kF32), HasSubstr("cut short"));
  EXPECT_THAT(why({16, 2}, kQ4_0), HasSubstr("no whole blocks of Q4_0"));
  EXPECT_THAT(why({4}, 5), HasSubstr("of type 5, which is not known"));
}

TEST(GgufTest, NamesInSentencesSteerNoTerminal) {
  const std::string why = WhyRefused(GgufWriter().Tensor("\x1b[2J", {4}, 5, 0).File());
  EXPECT_THAT(why, HasSubstr("tensor ?[2J"));
}

// Whatever one byte becomes, a file that is read has tensors within it.
TEST(GgufTest, AnyByteMayBeWrong) {
  const std::string good = TwoTensors().Words("t", {"a", "b"}).Numbers("n", {1, 2}).File();
  std::mt19937_64 random(harness::Seed());
  for (size_t at = 0; at < good.size(); ++at) {
    std::string file = good;
    file[at] = static_cast<char>(random());
    const absl::StatusOr<Gguf> gguf = DecodeGgufUntrusted(AsBytes(file));
    if (!gguf.ok()) continue;
    const std::byte* const end = AsBytes(file).data() + file.size();
    for (const Tensor& tensor : gguf->tensors().all()) {
      ASSERT_LE(tensor.bytes.data() + tensor.bytes.size(), end) << at;
    }
  }
}

}  // namespace
}  // namespace serve::llm
