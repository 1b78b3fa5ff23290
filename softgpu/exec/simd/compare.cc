// setp: comparisons into predicates. decode swaps operands so that only these comparisons remain:
// eq ne lt le of numbers, and the unordered equ neu ltu leu, num, nan.
#include "softgpu/exec/simd/numbers.h"

namespace softgpu::exec {
namespace {

using u16 = uint16_t;
using u32 = uint32_t;
using u64 = uint64_t;

template <class T>
const Inst* Eq(const Inst* ip, Warp* w) {
  return Test2<T>(ip, w, [](T a, T b) { return a == b; });
}
template <class T>
const Inst* Ne(const Inst* ip, Warp* w) {
  return Test2<T>(ip, w, [](T a, T b) { return a != b; });
}
template <class T>
const Inst* Lt(const Inst* ip, Warp* w) {
  return Test2<T>(ip, w, [](T a, T b) { return a < b; });
}
template <class T>
const Inst* Le(const Inst* ip, Warp* w) {
  return Test2<T>(ip, w, [](T a, T b) { return a <= b; });
}

enum class FloatTest { kEq, kNe, kLt, kLe, kEqu, kNeu, kLtu, kLeu, kNum, kNan };

template <FloatTest kTest, class T>
[[gnu::always_inline]] inline bool Holds(T a, T b) {
  switch (kTest) {
    case FloatTest::kEq:
      return a == b;
    case FloatTest::kNe:
      return (a < b) | (a > b);
    case FloatTest::kLt:
      return a < b;
    case FloatTest::kLe:
      return a <= b;
    case FloatTest::kEqu:
      return !((a < b) | (a > b));
    case FloatTest::kNeu:
      return a != b;
    case FloatTest::kLtu:
      return !(a >= b);
    case FloatTest::kLeu:
      return !(a > b);
    case FloatTest::kNum:
      return (a == a) & (b == b);
    case FloatTest::kNan:
      return (a != a) | (b != b);
  }
  return false;
}
template <FloatTest kTest>
const Inst* F32(const Inst* ip, Warp* w) {
  return Test2<float>(ip, w, [](float a, float b) { return Holds<kTest>(a, b); });
}
template <FloatTest kTest>
const Inst* F64(const Inst* ip, Warp* w) {
  return Test2<double>(ip, w, [](double a, double b) { return Holds<kTest>(a, b); });
}
template <FloatTest kTest>
const Inst* F16(const Inst* ip, Warp* w) {
  return Test2<u16>(ip, w,
                    [](u16 a, u16 b) { return Holds<kTest>(HalfToFloat(a), HalfToFloat(b)); });
}
template <FloatTest kTest>
const Inst* BF16(const Inst* ip, Warp* w) {
  return Test2<u16>(ip, w,
                    [](u16 a, u16 b) { return Holds<kTest>(Bf16ToFloat(a), Bf16ToFloat(b)); });
}
// The upper halves of packed registers; the lower ones are variant 0.
template <FloatTest kTest, class H, int kShift>
const Inst* Packed(const Inst* ip, Warp* w) {
  return Test2<u32>(ip, w, [](u32 a, u32 b) {
    return Holds<kTest>(H::ToFloat(u16(a >> kShift)), H::ToFloat(u16(b >> kShift)));
  });
}

using enum Type;
using ptx::Compare;

constexpr int kHighHalf = 32;
constexpr uint32_t SetKey(Type type, Compare compare, int extra = 0) {
  return Key(Op::kSetp, type, static_cast<int>(compare) + extra);
}

#define FLOATS(test)                                                                 \
  {SetKey(kF32, Compare::test), F32<FloatTest::test>},                               \
      {SetKey(kF64, Compare::test), F64<FloatTest::test>},                           \
      {SetKey(kF16, Compare::test), F16<FloatTest::test>},                           \
      {SetKey(kBF16, Compare::test), BF16<FloatTest::test>},                         \
      {SetKey(kF16x2, Compare::test), Packed<FloatTest::test, Half, 0>},             \
      {SetKey(kF16x2, Compare::test, kHighHalf), Packed<FloatTest::test, Half, 16>}, \
      {SetKey(kBF16x2, Compare::test), Packed<FloatTest::test, Bf16, 0>}, {          \
    SetKey(kBF16x2, Compare::test, kHighHalf), Packed<FloatTest::test, Bf16, 16>     \
  }
#define INTEGERS(type, T) \
  {SetKey(type, Compare::kLt), Lt<T>}, { SetKey(type, Compare::kLe), Le<T> }
#define EQUALITY(type, T) \
  {SetKey(type, Compare::kEq), Eq<T>}, { SetKey(type, Compare::kNe), Ne<T> }

constexpr HandlerRow kRows[] = {
    EQUALITY(kU16, u16),
    EQUALITY(kU32, u32),
    EQUALITY(kU64, u64),
    INTEGERS(kU16, u16),
    INTEGERS(kU32, u32),
    INTEGERS(kU64, u64),
    INTEGERS(kS16, int16_t),
    INTEGERS(kS32, int32_t),
    INTEGERS(kS64, int64_t),
    FLOATS(kEq),
    FLOATS(kNe),
    FLOATS(kLt),
    FLOATS(kLe),
    FLOATS(kEqu),
    FLOATS(kNeu),
    FLOATS(kLtu),
    FLOATS(kLeu),
    FLOATS(kNum),
    FLOATS(kNan),
};

}  // namespace
}  // namespace softgpu::exec

SOFTGPU_ROWS(Compare, kRows)
