#include "serve/llm/format/dequantise.h"

#include <bit>
#include <cassert>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace serve::llm {
namespace {

using Block = const uint8_t*;
using ElementOf = float (*)(Block block, uint32_t i);

// A half has one bit of sign, five of exponent and ten of fraction.
float FloatOfHalf(uint16_t half) {
  const uint32_t exponent = (half >> 10) & 31;
  const uint32_t fraction = half & 0x3ff;
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000) << 16;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000 | fraction << 13);
  if (exponent != 0) return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
  const float magnitude = std::ldexp(static_cast<float>(fraction), -24);
  return sign != 0 ? -magnitude : magnitude;
}

template <typename T>
T NumberAt(Block at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

float HalfAt(Block at) { return FloatOfHalf(NumberAt<uint16_t>(at)); }
int32_t SignedAt(Block at) { return static_cast<int8_t>(*at); }

// In blocks of 32 the first 16 elements are the low halves of the bytes.
int32_t NibbleOf32(Block bytes, uint32_t i) { return (bytes[i % 16] >> (i / 16 * 4)) & 15; }

// In blocks of 256 each 64 elements have 32 bytes: the first 32 are the low halves.
int32_t NibbleOf256(Block bytes, uint32_t i) {
  return (bytes[i / 64 * 32 + i % 32] >> (i / 32 % 2 * 4)) & 15;
}

// Each 128 elements have 32 bytes, and a byte has two bits of each of four runs of 32.
int32_t PairOf256(Block bytes, uint32_t i) {
  return (bytes[i / 128 * 32 + i % 32] >> (i / 32 % 4 * 2)) & 3;
}

float F32(Block block, uint32_t i) { return NumberAt<float>(block); }
float F16(Block block, uint32_t i) { return HalfAt(block); }
float Bf16(Block block, uint32_t i) {
  return std::bit_cast<float>(static_cast<uint32_t>(NumberAt<uint16_t>(block)) << 16);
}

// d, 16 bytes of nibbles
float Q4_0(Block block, uint32_t i) {
  return static_cast<float>(NibbleOf32(block + 2, i) - 8) * HalfAt(block);
}

// d, m, 16 bytes of nibbles
float Q4_1(Block block, uint32_t i) {
  return static_cast<float>(NibbleOf32(block + 4, i)) * HalfAt(block) + HalfAt(block + 2);
}

// d, 32 fifth bits, 16 bytes of nibbles
float Q5_0(Block block, uint32_t i) {
  const int32_t fifth = (NumberAt<uint32_t>(block + 2) >> i & 1) << 4;
  return static_cast<float>((NibbleOf32(block + 6, i) | fifth) - 16) * HalfAt(block);
}

// d, m, 32 fifth bits, 16 bytes of nibbles
float Q5_1(Block block, uint32_t i) {
  const int32_t fifth = (NumberAt<uint32_t>(block + 4) >> i & 1) << 4;
  return static_cast<float>(NibbleOf32(block + 8, i) | fifth) * HalfAt(block) + HalfAt(block + 2);
}

// d, 32 signed bytes
float Q8_0(Block block, uint32_t i) {
  return static_cast<float>(SignedAt(block + 2 + i)) * HalfAt(block);
}

// 16 bytes of a scale (low half) and a minimum, 64 bytes of pairs, d, m
float Q2_K(Block block, uint32_t i) {
  const uint8_t scales = block[i / 16];
  const float d = HalfAt(block + 80), m = HalfAt(block + 82);
  const float scale = d * static_cast<float>(scales & 15);
  const float minimum = m * static_cast<float>(scales >> 4);
  return scale * static_cast<float>(PairOf256(block + 16, i)) - minimum;
}

// 32 bytes of third bits (one of each of eight runs of 32), 64 bytes of pairs, 12 bytes of scales,
// d. Of the 16 scales the first 8 bytes have four bits each, the last 4 two more bits.
float Q3_K(Block block, uint32_t i) {
  const Block scales = block + 96;
  const uint32_t sub = i / 16;
  const int32_t low = (scales[sub % 8] >> (sub / 8 * 4)) & 15;
  const int32_t high = (scales[8 + sub % 4] >> (sub / 4 * 2)) & 3;
  const float scale = HalfAt(block + 108) * static_cast<float>((low | high << 4) - 32);
  const int32_t third = (block[i % 32] >> (i / 32) & 1) << 2;
  return scale * static_cast<float>((PairOf256(block + 32, i) | third) - 4);
}

// The scale and the minimum of a sub-block of 32: 6 bits each, 12 bytes for eight of both. Those of
// the last four have their upper two bits in the upper bits of the first four.
struct ScaleAndMinimum {
  float scale;
  float minimum;
};
ScaleAndMinimum ScalesOf32(Block packed, uint32_t sub) {
  if (sub < 4)
    return {static_cast<float>(packed[sub] & 63), static_cast<float>(packed[sub + 4] & 63)};
  const int32_t scale = (packed[sub + 4] & 15) | (packed[sub - 4] >> 6) << 4;
  const int32_t minimum = (packed[sub + 4] >> 4) | (packed[sub] >> 6) << 4;
  return {static_cast<float>(scale), static_cast<float>(minimum)};
}

float Scaled(Block block, uint32_t i, int32_t number) {
  const ScaleAndMinimum of = ScalesOf32(block + 4, i / 32);
  const float scale = HalfAt(block) * of.scale;
  const float minimum = HalfAt(block + 2) * of.minimum;
  return scale * static_cast<float>(number) - minimum;
}

// d, m, 12 bytes of scales, 128 bytes of nibbles
float Q4_K(Block block, uint32_t i) { return Scaled(block, i, NibbleOf256(block + 16, i)); }

// d, m, 12 bytes of scales, 32 bytes of fifth bits (one of each of eight runs of 32), 128 bytes of
// nibbles
float Q5_K(Block block, uint32_t i) {
  const int32_t fifth = (block[16 + i % 32] >> (i / 32) & 1) << 4;
  return Scaled(block, i, NibbleOf256(block + 48, i) | fifth);
}

// 128 bytes of lower four bits, 64 bytes of upper pairs, 16 signed scales, d. Each 128 elements
// have 64 bytes of nibbles: the low halves are the first 64.
float Q6_K(Block block, uint32_t i) {
  const int32_t low = (block[i / 128 * 64 + i % 64] >> (i / 64 % 2 * 4)) & 15;
  const int32_t number = (low | PairOf256(block + 128, i) << 4) - 32;
  const float scale = HalfAt(block + 208) * static_cast<float>(SignedAt(block + 192 + i / 16));
  return scale * static_cast<float>(number);
}

// The loop is made for each type, so that a compiler sees through `element`.
template <ElementOf element>
void Each(const TensorType& type, Block block, std::span<float> out) {
  for (size_t from = 0; from < out.size(); from += type.block_elements) {
    for (uint32_t i = 0; i < type.block_elements; ++i) out[from + i] = element(block, i);
    block += type.block_bytes;
  }
}

struct Reader {
  uint32_t number;
  void (*read)(const TensorType&, Block, std::span<float>);
};
constexpr Reader kReaders[] = {
    {0, Each<F32>},   {1, Each<F16>},   {2, Each<Q4_0>},  {3, Each<Q4_1>},  {6, Each<Q5_0>},
    {7, Each<Q5_1>},  {8, Each<Q8_0>},  {10, Each<Q2_K>}, {11, Each<Q3_K>}, {12, Each<Q4_K>},
    {13, Each<Q5_K>}, {14, Each<Q6_K>}, {30, Each<Bf16>},
};

const Reader* ReaderOf(const TensorType& type) {
  for (const Reader& reader : kReaders) {
    if (reader.number == type.number) return &reader;
  }
  return nullptr;
}

}  // namespace

bool IsReadable(const TensorType& type) { return ReaderOf(type) != nullptr; }

void Dequantise(const TensorType& type, std::span<const std::byte> blocks, std::span<float> out) {
  const Reader* const reader = ReaderOf(type);
  assert(reader != nullptr);
  assert(out.size() % type.block_elements == 0);
  assert(blocks.size() / type.block_bytes == out.size() / type.block_elements);
  reader->read(type, reinterpret_cast<Block>(blocks.data()), out);
}

}  // namespace serve::llm
