// The vocabulary of PTX that both the parser and the executors speak: types, state spaces,
// modifiers. Names are the PTX ISA's. Everything here is a value: no ownership, safe from any
// thread.
#pragma once

#include <cstdint>
#include <string_view>

namespace softgpu::ptx {

enum class Type : uint8_t {
  kNone,
  kPred,
  kB8,
  kB16,
  kB32,
  kB64,
  kB128,
  kU8,
  kU16,
  kU32,
  kU64,
  kS8,
  kS16,
  kS32,
  kS64,
  kF16,
  kBF16,
  kTF32,
  kF32,
  kF64,
  kF16x2,
  kBF16x2,
  kF32x2,
  kU16x2,
  kS16x2,
  kE4M3x2,
  kE5M2x2,
  kE4M3,
  kE5M2,
  kB1,
  kU2,
  kS2,
  kU4,
  kS4,
};

// Size of one value; a predicate counts 1 bit.
uint32_t Bits(Type type);
inline uint32_t Bytes(Type type) { return Bits(type) / 8; }
bool IsSigned(Type type);
bool IsFloat(Type type);  // f16, bf16, tf32, f32, f64 and the packed halves
std::string_view Name(Type type);
// kNone when `name` (without its dot) is no type.
Type TypeFromName(std::string_view name);

enum class Space : uint8_t { kGeneric, kGlobal, kConst, kShared, kLocal, kParam, kReg };

enum class Rounding : uint8_t { kNone, kRn, kRz, kRm, kRp, kRna, kRni, kRzi, kRmi, kRpi };

enum class Compare : uint8_t {
  kEq,
  kNe,
  kLt,
  kLe,
  kGt,
  kGe,
  kLo,
  kLs,
  kHi,
  kHs,
  kEqu,
  kNeu,
  kLtu,
  kLeu,
  kGtu,
  kGeu,
  kNum,
  kNan,
};

enum class Combine : uint8_t { kNone, kAnd, kOr, kXor, kPopc, kAdd, kMin, kMax };
enum class MulMode : uint8_t { kNone, kLo, kHi, kWide };
enum class AtomOp : uint8_t { kAnd, kOr, kXor, kAdd, kInc, kDec, kMin, kMax, kCas, kExch };
enum class ShflMode : uint8_t { kUp, kDown, kBfly, kIdx };
enum class VoteMode : uint8_t { kAll, kAny, kUni, kBallot };
enum class PrmtMode : uint8_t { kDefault, kF4e, kB4e, kRc8, kEcl, kEcr, kRc16 };
enum class TestKind : uint8_t { kFinite, kInfinite, kNumber, kNotANumber, kNormal, kSubnormal };
enum class BarMode : uint8_t { kSync, kArrive, kRed };
enum class ShfMode : uint8_t { kLeft, kRight };
enum class MmaShape : uint8_t {
  kM16N8K4,
  kM16N8K8,
  kM16N8K16,
  kM16N8K32,
  kM8N8,
  kM16N8K64,
  kM16N8K128,
  kM16N8K256,
  kM8N8K4,
  kM8N8K16,
  kM8N8K32,
  kM8N8K128,
  kM16N16K16,
  kM16N16K8,
  kM8N32K16,
  kM32N8K16,
};
enum class Geometry : uint8_t { k1D, k2D, k3D, k1DLayered, k2DLayered, kCube, kCubeLayered };
enum class TextureQuery : uint8_t { kWidth, kHeight, kDepth };
enum class AsyncMode : uint8_t { kCopy, kCommitGroup, kWaitGroup, kWaitAll, kPrefetch };

// Modifiers that are there or not.
enum Flag : uint32_t {
  kFtz = 1 << 0,
  kSat = 1 << 1,
  kApprox = 1 << 2,
  kFull = 1 << 3,
  kCarryOut = 1 << 4,
  kSync = 1 << 5,
  kUni = 1 << 6,
  kWrap = 1 << 7,  // shf.wrap; the default is clamp
  kShiftAmount = 1 << 8,
  kRelu = 1 << 9,
  kNanResult = 1 << 10,  // min.NaN, max.NaN
  kTo = 1 << 11,         // cvta.to
  kVolatile = 1 << 12,
  kTranspose = 1 << 13,
  kSatFinite = 1 << 15,
  kRow = 1 << 16,
  kCol = 1 << 17,
  kHasMode = 1 << 18,  // a word set Instruction::mode
  kNoIncrement = 1 << 14,
  kXorsign = 1 << 19,
  kAbsolute = 1 << 20,
  kOutsideClamps = 1 << 22,  // suld.clamp, sust.clamp; the default traps
  kOutsideIsZero = 1 << 23,  // suld.zero, sust.zero
  kCacheHint = 1 << 21,      // the last operand was a cache policy; it is gone after Check
  kExpectTx = 1 << 24,       // mbarrier.arrive.expect_tx
  kParity = 1 << 25,         // mbarrier.test_wait.parity
  kPlusOne = 1 << 26,        // vmad.po
  kMulticast = 1 << 27,      // the last operand is a mask of the cluster's blocks
  kComponent1 = 1 << 28,     // tld4: which component, in two bits
  kComponent2 = 1 << 29,
};

// Registers whose value the hardware provides. Order matters to nobody.
enum class Special : uint8_t {
  kTidX,
  kTidY,
  kTidZ,
  kNtidX,
  kNtidY,
  kNtidZ,
  kCtaidX,
  kCtaidY,
  kCtaidZ,
  kNctaidX,
  kNctaidY,
  kNctaidZ,
  kLaneId,
  kWarpId,
  kNWarpId,
  kSmId,
  kNSmId,
  kGridId,
  kClock,
  kClockHi,
  kClock64,
  kGlobalTimer,
  kGlobalTimerLo,
  kGlobalTimerHi,
  kLanemaskEq,
  kLanemaskLe,
  kLanemaskLt,
  kLanemaskGe,
  kLanemaskGt,
  kDynamicSharedSize,
  kTotalSharedSize,
  kWarpSize,
  kEnvreg1,
  kEnvreg2,
  kZero,
  kZero64,
  kOne,
  kNone,
};
// kNone when `name` ("%tid.x", "WARP_SZ") is no special register.
Special SpecialFromName(std::string_view name);
// 64 for the 64-bit ones, else 32.
uint32_t Bits(Special special);

// Where an address lies when a kernel uses it without saying a space. Shared and local memory have
// windows of their own above every canonical user address, so that no host mapping can collide.
inline constexpr uint64_t kSharedWindow = 0x0001'0000'0000'0000ull;
inline constexpr uint64_t kLocalWindow = 0x0001'0001'0000'0000ull;
inline constexpr uint64_t kParamWindow = 0x0001'0002'0000'0000ull;
// Memory of a cooperative grid's barrier, which the driver provides: %envreg1 and %envreg2 hold its
// address.
inline constexpr uint64_t kGridWindow = 0x0001'0004'0000'0000ull;
inline constexpr uint64_t kGridBytes = 64;
inline constexpr uint64_t kFunctionWindow =
    0x0001'0003'0000'0000ull;  // + 16 * index of the function
inline constexpr uint64_t kWindowBytes = 0x1'0000'0000ull;
inline constexpr uint64_t kSharedBytesLimit = 256u << 10;  // of one block, dynamic memory included

}  // namespace softgpu::ptx
