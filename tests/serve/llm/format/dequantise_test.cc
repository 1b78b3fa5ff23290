// Blocks are packed here bit by bit from random numbers, as GGUF's documentation describes each
// layout, and each element must come out as its formula says.
#include "serve/llm/format/dequantise.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "tests/harness/seed.h"

namespace serve::llm {
namespace {

// 1.5 and -0.25 as halves: exact in float, so are products with small whole numbers.
constexpr uint16_t kD = 0x3e00, kM = 0xb400;
constexpr float kDValue = 1.5f, kMValue = -0.25f;

std::vector<float> Read(uint32_t number, const std::vector<uint8_t>& block) {
  const TensorType& type = *FindTensorType(number);
  EXPECT_EQ(block.size(), type.block_bytes);
  std::vector<float> out(type.block_elements);
  Dequantise(type, std::as_bytes(std::span(block)), out);
  return out;
}

class DequantiseTest : public ::testing::Test {
 protected:
  DequantiseTest() : random_(harness::Seed()) {}

  std::vector<int> Draw(size_t count, int max) {
    std::vector<int> numbers(count);
    for (int& number : numbers) number = static_cast<int>(random_() % (max + 1u));
    return numbers;
  }
  void Half(uint16_t half) {
    Byte(half & 0xff);
    Byte(half >> 8);
  }
  void Byte(int byte) { block_.push_back(static_cast<uint8_t>(byte)); }

  // The nibbles of 32 elements: byte i has elements i and i + 16.
  void Nibbles32(const std::vector<int>& q) {
    for (int i = 0; i < 16; ++i) Byte((q[i] & 15) | (q[i + 16] & 15) << 4);
  }
  // Of 256: in each 64, byte i has elements i and i + 32.
  void Nibbles256(const std::vector<int>& q) {
    for (int from = 0; from < 256; from += 64) {
      for (int i = 0; i < 32; ++i) Byte((q[from + i] & 15) | (q[from + i + 32] & 15) << 4);
    }
  }
  // In each 128, byte i has `shift`ed pairs of elements i, i + 32, i + 64 and i + 96.
  void Pairs256(const std::vector<int>& q, int shift) {
    for (int from = 0; from < 256; from += 128) {
      for (int i = 0; i < 32; ++i) {
        int byte = 0;
        for (int run = 0; run < 4; ++run) byte |= (q[from + 32 * run + i] >> shift & 3) << 2 * run;
        Byte(byte);
      }
    }
  }
  // Byte i has bit `bit` of elements i, i + 32, ..., i + 224.
  void Bits256(const std::vector<int>& q, int bit) {
    for (int i = 0; i < 32; ++i) {
      int byte = 0;
      for (int run = 0; run < 8; ++run) byte |= (q[32 * run + i] >> bit & 1) << run;
      Byte(byte);
    }
  }
  void Bits32(const std::vector<int>& q) {
    uint32_t bits = 0;
    for (int i = 0; i < 32; ++i) bits |= static_cast<uint32_t>(q[i] >> 4 & 1) << i;
    for (int i = 0; i < 4; ++i) Byte(static_cast<int>(bits >> 8 * i & 255));
  }
  // Scales and minima of eight sub-blocks, 6 bits each, in 12 bytes.
  void Scales12(const std::vector<int>& scale, const std::vector<int>& minimum) {
    for (int i = 0; i < 4; ++i) Byte(scale[i] | (scale[i + 4] >> 4) << 6);
    for (int i = 0; i < 4; ++i) Byte(minimum[i] | (minimum[i + 4] >> 4) << 6);
    for (int i = 4; i < 8; ++i) Byte((scale[i] & 15) | (minimum[i] & 15) << 4);
  }

  std::mt19937_64 random_;
  std::vector<uint8_t> block_;
};

TEST_F(DequantiseTest, Q4_0) {
  const std::vector<int> q = Draw(32, 15);
  Half(kD);
  Nibbles32(q);
  const std::vector<float> out = Read(2, block_);
  for (int i = 0; i < 32; ++i) EXPECT_EQ(out[i], kDValue * static_cast<float>(q[i] - 8)) << i;
}

TEST_F(DequantiseTest, Q4_1) {
  const std::vector<int> q = Draw(32, 15);
  Half(kD);
  Half(kM);
  Nibbles32(q);
  const std::vector<float> out = Read(3, block_);
  for (int i = 0; i < 32; ++i) EXPECT_EQ(out[i], kDValue * static_cast<float>(q[i]) + kMValue) << i;
}

TEST_F(DequantiseTest, Q5_0) {
  const std::vector<int> q = Draw(32, 31);
  Half(kD);
  Bits32(q);
  Nibbles32(q);
  const std::vector<float> out = Read(6, block_);
  for (int i = 0; i < 32; ++i) EXPECT_EQ(out[i], kDValue * static_cast<float>(q[i] - 16)) << i;
}

TEST_F(DequantiseTest, Q5_1) {
  const std::vector<int> q = Draw(32, 31);
  Half(kD);
  Half(kM);
  Bits32(q);
  Nibbles32(q);
  const std::vector<float> out = Read(7, block_);
  for (int i = 0; i < 32; ++i) EXPECT_EQ(out[i], kDValue * static_cast<float>(q[i]) + kMValue) << i;
}

TEST_F(DequantiseTest, Q8_0) {
  const std::vector<int> q = Draw(32, 255);
  Half(kD);
  for (const int number : q) Byte(number);
  const std::vector<float> out = Read(8, block_);
  for (int i = 0; i < 32; ++i)
    EXPECT_EQ(out[i], kDValue * static_cast<float>(q[i] < 128 ? q[i] : q[i] - 256)) << i;
}

TEST_F(DequantiseTest, Q2_K) {
  const std::vector<int> q = Draw(256, 3), scale = Draw(16, 15), minimum = Draw(16, 15);
  for (int i = 0; i < 16; ++i) Byte(scale[i] | minimum[i] << 4);
  Pairs256(q, 0);
  Half(kD);
  Half(kM);
  const std::vector<float> out = Read(10, block_);
  for (int i = 0; i < 256; ++i)
    EXPECT_EQ(out[i], kDValue * static_cast<float>(scale[i / 16] * q[i]) -
                          kMValue * static_cast<float>(minimum[i / 16]))
        << i;
}

TEST_F(DequantiseTest, Q3_K) {
  const std::vector<int> q = Draw(256, 7), scale = Draw(16, 63);
  Bits256(q, 2);
  Pairs256(q, 0);
  for (int i = 0; i < 8; ++i) Byte((scale[i] & 15) | (scale[i + 8] & 15) << 4);
  for (int i = 0; i < 4; ++i) {
    int byte = 0;
    for (int run = 0; run < 4; ++run) byte |= (scale[4 * run + i] >> 4) << 2 * run;
    Byte(byte);
  }
  Half(kD);
  const std::vector<float> out = Read(11, block_);
  for (int i = 0; i < 256; ++i)
    EXPECT_EQ(out[i], kDValue * static_cast<float>((scale[i / 16] - 32) * (q[i] - 4))) << i;
}

TEST_F(DequantiseTest, Q4_K) {
  const std::vector<int> q = Draw(256, 15), scale = Draw(8, 63), minimum = Draw(8, 63);
  Half(kD);
  Half(kM);
  Scales12(scale, minimum);
  Nibbles256(q);
  const std::vector<float> out = Read(12, block_);
  for (int i = 0; i < 256; ++i)
    EXPECT_EQ(out[i], kDValue * static_cast<float>(scale[i / 32] * q[i]) -
                          kMValue * static_cast<float>(minimum[i / 32]))
        << i;
}

TEST_F(DequantiseTest, Q5_K) {
  const std::vector<int> q = Draw(256, 31), scale = Draw(8, 63), minimum = Draw(8, 63);
  Half(kD);
  Half(kM);
  Scales12(scale, minimum);
  Bits256(q, 4);
  Nibbles256(q);
  const std::vector<float> out = Read(13, block_);
  for (int i = 0; i < 256; ++i)
    EXPECT_EQ(out[i], kDValue * static_cast<float>(scale[i / 32] * q[i]) -
                          kMValue * static_cast<float>(minimum[i / 32]))
        << i;
}

TEST_F(DequantiseTest, Q6_K) {
  const std::vector<int> q = Draw(256, 63), scale = Draw(16, 255);
  for (int from = 0; from < 256; from += 128) {
    for (int i = 0; i < 64; ++i) Byte((q[from + i] & 15) | (q[from + i + 64] & 15) << 4);
  }
  Pairs256(q, 4);
  for (const int number : scale) Byte(number);
  Half(kD);
  const std::vector<float> out = Read(14, block_);
  for (int i = 0; i < 256; ++i) {
    const int signed_scale = scale[i / 16] < 128 ? scale[i / 16] : scale[i / 16] - 256;
    EXPECT_EQ(out[i], kDValue * static_cast<float>(signed_scale * (q[i] - 32))) << i;
  }
}

TEST(FloatsTest, EveryHalfIsItsFloat) {
  const TensorType& type = *FindTensorType(1);
  for (int bits = 0; bits < 1 << 16; ++bits) {
    const uint16_t half = static_cast<uint16_t>(bits);
    float out = 0;
    Dequantise(type, std::as_bytes(std::span(&half, 1)), std::span(&out, 1));
    const int exponent = half >> 10 & 31, fraction = half & 0x3ff;
    const double sign = (half & 0x8000) != 0 ? -1 : 1;
    if (exponent == 31 && fraction != 0) {
      ASSERT_TRUE(std::isnan(out)) << bits;
    } else if (exponent == 31) {
      ASSERT_EQ(out, sign * HUGE_VAL) << bits;
    } else {
      const double magnitude =
          exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
      ASSERT_EQ(out, sign * magnitude) << bits;
      ASSERT_EQ(std::signbit(out), sign < 0) << bits;
    }
  }
}

TEST(FloatsTest, Bf16IsTheUpperHalfOfAFloat) {
  const uint16_t bits = 0xc0a0;  // -5
  float out = 0;
  Dequantise(*FindTensorType(30), std::as_bytes(std::span(&bits, 1)), std::span(&out, 1));
  EXPECT_EQ(out, -5.0f);
}

TEST(FloatsTest, BlocksFollowEachOther) {
  std::vector<uint8_t> blocks(3 * 34, 0);
  for (int block = 0; block < 3; ++block) {
    blocks[block * 34 + 1] = 0x3c;  // d is 1
    blocks[block * 34 + 2 + block] = 7;
  }
  std::vector<float> out(96);
  Dequantise(*FindTensorType(8), std::as_bytes(std::span(blocks)), out);
  for (int i = 0; i < 96; ++i) EXPECT_EQ(out[i], i % 33 == 0 ? 7.0f : 0.0f) << i;
}

TEST(FloatsTest, TypesWithoutAFormulaAreNotReadable) {
  for (const uint32_t number : {9u, 15u, 16u, 20u, 24u, 28u, 34u, 39u})
    EXPECT_FALSE(IsReadable(*FindTensorType(number))) << number;
  for (const uint32_t number : {0u, 1u, 2u, 3u, 6u, 7u, 8u, 10u, 11u, 12u, 13u, 14u, 30u})
    EXPECT_TRUE(IsReadable(*FindTensorType(number))) << number;
}

}  // namespace
}  // namespace serve::llm
