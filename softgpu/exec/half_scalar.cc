#include "softgpu/exec/half_scalar.h"

#include <bit>
#include <cmath>

namespace softgpu::exec::scalar {

float HalfToFloat(uint16_t h) {
  const int exponent = h >> 10 & 31, mantissa = h & 0x3ff;
  float size;
  if (exponent == 31) {
    size = mantissa != 0 ? std::bit_cast<float>(0x7fffffffu) : INFINITY;
  } else if (exponent == 0) {
    size = static_cast<float>(mantissa) * 0x1p-24f;
  } else {
    size = std::bit_cast<float>(static_cast<uint32_t>((exponent + 112) << 23 | mantissa << 13));
  }
  return (h & 0x8000) != 0 ? -size : size;
}

uint16_t FloatToHalf(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x), magnitude = bits & 0x7fffffff;
  const uint16_t sign = static_cast<uint16_t>(bits >> 16 & 0x8000);
  if (magnitude > 0x7f800000) return 0x7fff;
  if (magnitude >= 0x477ff000) return sign | 0x7c00;  // 65520 and more
  if (magnitude < 0x38800000) {                       // below 2^-14: in units of 2^-24
    const float units = std::bit_cast<float>(magnitude) * 0x1p24f;
    return sign | static_cast<uint16_t>(std::nearbyint(units));
  }
  return sign |
         static_cast<uint16_t>((magnitude - (112u << 23) + 0xfff + (magnitude >> 13 & 1)) >> 13);
}

float Bf16ToFloat(uint16_t h) { return std::bit_cast<float>(static_cast<uint32_t>(h) << 16); }

float Fp8ToFloat(uint8_t v, int exponent_bits) {
  const int mantissa_bits = 7 - exponent_bits, top = (1 << exponent_bits) - 1;
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = v >> mantissa_bits & top, mantissa = v & ((1 << mantissa_bits) - 1);
  const bool ends = exponent == top && (exponent_bits == 5 || mantissa == 7);  // no number
  float size;
  if (ends) {
    const bool infinite = exponent_bits == 5 && mantissa == 0;
    size = infinite ? INFINITY : std::bit_cast<float>(0x7fffffffu);
  } else if (exponent == 0) {
    size = std::ldexp(static_cast<float>(mantissa), 1 - bias - mantissa_bits);
  } else {
    size = std::ldexp(static_cast<float>(mantissa + (1 << mantissa_bits)),
                      exponent - bias - mantissa_bits);
  }
  return (v & 0x80) != 0 ? -size : size;
}

uint16_t FloatToBf16(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  if ((bits & 0x7fffffff) > 0x7f800000) return 0x7fff;
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

}  // namespace softgpu::exec::scalar
