// f16 and bf16 one value at a time, for code that is not over lanes (atomics, mma).
// Thread safety: pure functions.
#pragma once

#include <cstdint>

namespace softgpu::exec::scalar {

float HalfToFloat(uint16_t h);
uint16_t FloatToHalf(float x);  // to nearest even, NaN to 0x7fff
float Bf16ToFloat(uint16_t h);
float Fp8ToFloat(uint8_t v, int exponent_bits);  // 4: e4m3, 5: e5m2
uint16_t FloatToBf16(float x);

}  // namespace softgpu::exec::scalar
