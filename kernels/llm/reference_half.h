// A 16-bit float of IEEE 754 for references on the host: not every compiler has one for x86-64.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

namespace kernels::llm {

// Rounds to the nearest, ties to even, as the device does. Every value is exact as a double.
class Half {
 public:
  Half() = default;
  explicit Half(double value) : bits_(Encode(value)) {}
  explicit operator double() const {
    double sign = (bits_ & 0x8000) != 0 ? -1 : 1;
    int exponent = bits_ >> 10 & 31;
    int fraction = bits_ & 0x3ff;
    if (exponent == 31) {
      return sign * (fraction != 0 ? std::numeric_limits<double>::quiet_NaN()
                                   : std::numeric_limits<double>::infinity());
    }
    // Subnormal numbers have the smallest exponent, and no leading one.
    return sign * (exponent == 0 ? std::ldexp(fraction, -24)
                                 : std::ldexp(fraction + 0x400, exponent - 25));
  }

 private:
  static uint16_t Encode(double value) {
    auto sign = static_cast<uint16_t>(std::signbit(value) ? 0x8000 : 0);
    double size = std::fabs(value);
    if (std::isnan(size)) return 0x7fff;
    if (size >= 65520) return sign | 0x7c00;  // half a step above the largest number
    int exponent = size < 0x1p-14 ? -14 : std::ilogb(size);
    auto steps = static_cast<int>(std::nearbyint(std::ldexp(size, 10 - exponent)));
    // A number that rounds up to a power of two carries into the exponent by itself.
    return static_cast<uint16_t>(sign | (((exponent + 14) << 10) + steps));
  }

  uint16_t bits_ = 0;
};

}  // namespace kernels::llm
