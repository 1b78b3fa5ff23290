// Random kernels, run by the interpreter and compiled: every register and every byte of memory must
// be the same. LANEWAY_FUZZ_KERNELS=n runs more of them, LANEWAY_FUZZ_SEED=s begins elsewhere.
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "softgpu/jit/compiler.h"
#include "tests/softgpu/exec/machine.h"

namespace softgpu::testing {
namespace {

constexpr int kIntegers = 10, kFloats = 6, kDoubles = 3, kPredicates = 4;
constexpr int kInputWords = 256, kScratchWords = 16;
constexpr int kOutputWords = kIntegers + kFloats + 2 * kDoubles + 1;

// Writes one structured kernel: straight code, branches, loops, memory, barriers and shuffles.
class Generator {
 public:
  // whole_warps: without them a shuffle would read lanes that do not exist, whose values are
  // whatever was in the frame before.
  Generator(uint64_t seed, bool whole_warps) : random_(seed), whole_warps_(whole_warps) {}

  std::string Kernel() {
    text_.clear();
    Block(0, 14);
    const std::string body = text_;
    text_ = R"(.version 8.5
.target sm_90
.address_size 64
.visible .entry fuzz(.param .u64 in, .param .u64 out, .param .u64 scratch)
{
  .reg .pred %p<4>, %q;
  .reg .b32 %r<10>, %i, %t, %u, %k<8>;
  .reg .f32 %f<6>;
  .reg .f64 %d<3>;
  .reg .b64 %in, %out, %scratch, %at;
  .shared .align 4 .b8 pad[4096];
  ld.param.u64 %in, [in];
  ld.param.u64 %out, [out];
  ld.param.u64 %scratch, [scratch];
  mov.u32 %t, %tid.x;
  mov.u32 %u, %ntid.x;
  mov.u32 %i, %tid.y;
  mad.lo.s32 %t, %i, %u, %t;
  mov.u32 %i, %ntid.y;
  mul.lo.s32 %u, %u, %i;
  mov.u32 %i, %ctaid.x;
  mad.lo.s32 %i, %i, %u, %t;
  mul.wide.u32 %at, %i, 64;
  add.s64 %scratch, %scratch, %at;
)";
    for (int n = 0; n < kIntegers; ++n) Initial("%r" + Text(n), "u32", n);
    for (int n = 0; n < kFloats; ++n) Initial("%f" + Text(n), "f32", n + kIntegers);
    for (int n = 0; n < kDoubles; ++n) Line("cvt.f64.f32 %d" + Text(n) + ", %f" + Text(n));
    for (int n = 0; n < kPredicates; ++n)
      Line("setp.lt.u32 %p" + Text(n) + ", %r" + Text(n) + ", " + Text(Below(64)));
    text_ += body;
    Line("mul.wide.u32 %at, %i, " + Text(kOutputWords * 4 + 4));
    Line("add.s64 %out, %out, %at");
    int word = 0;
    for (int n = 0; n < kIntegers; ++n)
      Line("st.global.u32 [%out+" + Text(4 * word++) + "], %r" + Text(n));
    for (int n = 0; n < kFloats; ++n)
      Line("st.global.f32 [%out+" + Text(4 * word++) + "], %f" + Text(n));
    for (int n = 0; n < kDoubles; ++n) {
      Line("st.global.f64 [%out+" + Text(4 * word) + "], %d" + Text(n));
      word += 2;
    }
    return text_ + "  ret;\n}\n";
  }

 private:
  static std::string Text(int n) { return std::to_string(n); }
  int Below(int n) { return static_cast<int>(random_() % static_cast<uint64_t>(n)); }
  std::string Pick(std::initializer_list<const char*> words) {
    return words.begin()[Below(static_cast<int>(words.size()))];
  }
  std::string R() { return "%r" + Text(Below(kIntegers)); }
  std::string F() { return "%f" + Text(Below(kFloats)); }
  std::string D() { return "%d" + Text(Below(kDoubles)); }
  std::string P() { return "%p" + Text(Below(kPredicates)); }
  std::string Guard() { return Below(6) != 0 ? "" : (Below(2) != 0 ? "@!" : "@") + P() + " "; }
  std::string Source() {
    return Below(3) != 0 ? R() : Text(Below(2) != 0 ? Below(40) : int(random_() & 0x7fffffff));
  }
  void Line(const std::string& line) { text_ += "  " + line + ";\n"; }

  // From the inputs, from constants, or from where the thread stands.
  void Initial(const std::string& reg, const std::string& type, int n) {
    const int way = type == "f32" ? 0 : Below(4);
    if (way == 1) return Line("mov.u32 " + reg + ", " + Text(Below(1000)));
    if (way == 2) return Line("add.s32 " + reg + ", %t, " + Text(Below(50)));
    if (way == 3) return Line("mov.u32 " + reg + ", " + Pick({"%ctaid.x", "%laneid", "%u", "%i"}));
    Line("mad.lo.s32 %k7, %i, 7, " + Text(n * 16));
    Line("and.b32 %k7, %k7, " + Text(kInputWords - 1));
    Line("mad.wide.u32 %at, %k7, 4, %in");
    Line("ld.global." + type + " " + reg + ", [%at]");
  }

  void Integer() {
    const std::string g = Guard();
    switch (Below(16)) {
      case 0:
        return Line(g + "mad.lo.s32 " + R() + ", " + R() + ", " + Source() + ", " + R());
      case 1:
        return Line(g + Pick({"shl.b32 ", "shr.u32 ", "shr.s32 "}) + R() + ", " + R() + ", " +
                    Source());
      case 2:
        return Line(g + Pick({"min", "max"}) + Pick({".s32 ", ".u32 "}) + R() + ", " + R() + ", " +
                    Source());
      case 3:
        return Line(g + "lop3.b32 " + R() + ", " + R() + ", " + R() + ", " + R() + ", " +
                    Text(Below(256)));
      case 4:
        return Line(g + Pick({"popc.b32 ", "clz.b32 ", "brev.b32 ", "not.b32 ", "cnot.b32 "}) +
                    R() + ", " + R());
      case 5:
        return Line(g + Pick({"div.u32 ", "rem.u32 ", "mul.hi.u32 ", "div.s32 "}) + R() + ", " +
                    R() + ", " + R());
      case 6:
        return Line(g + "selp.b32 " + R() + ", " + R() + ", " + R() + ", " + P());
      case 7:
        return Line(g +
                    Pick({"shf.l.wrap.b32 ", "shf.r.clamp.b32 ", "shf.l.clamp.b32 ", "prmt.b32 ",
                          "bfe.u32 ", "bfe.s32 "}) +
                    R() + ", " + R() + ", " + R() + ", " + R());
      case 8:
        return Line(g + "cvt.rzi.s32.f32 " + R() + ", " + F());
      case 9:
        return Line(g + Pick({"abs.s32 ", "neg.s32 "}) + R() + ", " + R());
      case 10:
        return Line(g + Pick({"cvt.s32.s8 ", "cvt.u32.u16 ", "cvt.s32.s16 "}) + R() + ", " + R());
      default:
        return Line(
            g + Pick({"add.s32 ", "sub.s32 ", "mul.lo.s32 ", "and.b32 ", "or.b32 ", "xor.b32 "}) +
            R() + ", " + R() + ", " + Source());
    }
  }

  void Float() {
    const std::string g = Guard();
    switch (Below(12)) {
      case 10:
        return Line(g + Pick({"min.f32 ", "max.NaN.f32 ", "min.ftz.f32 "}) + F() + ", " + F() +
                    ", " + F() + ", " + F());
      case 11:
        Line("mov.b64 %at, {" + F() + ", " + F() + "}");
        Line(g + Pick({"add.rn.f32x2 ", "mul.rz.f32x2 ", "sub.ftz.f32x2 "}) + "%at, %at, %at");
        return Line("mov.b64 {" + F() + ", " + R() + "}, %at");
      case 0:
        return Line(g + "fma.rn.f32 " + F() + ", " + F() + ", " + F() + ", " + F());
      case 1:
        return Line(
            g +
            Pick({"sqrt.rn.f32 ", "rcp.rn.f32 ", "rsqrt.approx.f32 ", "abs.f32 ", "neg.f32 ",
                  "ex2.approx.f32 ", "lg2.approx.f32 ", "cvt.rni.f32.f32 ", "cvt.sat.f32.f32 "}) +
            F() + ", " + F());
      case 2:
        return Line(g + Pick({"cvt.rn.f32.s32 ", "cvt.rn.f32.u32 ", "cvt.rz.f32.s32 "}) + F() +
                    ", " + R());
      case 3:
        return Line(g + "selp.f32 " + F() + ", " + F() + ", " + F() + ", " + P());
      case 4:
        return Line(g + "fma.rn.f64 " + D() + ", " + D() + ", " + D() + ", " + D());
      case 5:
        return Line(g + Pick({"add.f64 ", "mul.f64 ", "sub.f64 "}) + D() + ", " + D() + ", " + D());
      case 6:
        return Line(g + (Below(2) != 0 ? "cvt.f64.f32 " + D() + ", " + F()
                                       : "cvt.rn.f32.f64 " + F() + ", " + D()));
      default:
        return Line(g +
                    Pick({"add.f32 ", "sub.f32 ", "mul.f32 ", "div.rn.f32 ", "min.f32 ", "max.f32 ",
                          "add.ftz.f32 ", "mul.rz.f32 "}) +
                    F() + ", " + F() + ", " + F());
    }
  }

  void Predicate() {
    const std::string compare = Pick({"eq", "ne", "lt", "le", "gt", "ge"});
    if (Below(3) == 0)
      return Line("setp." + compare + Pick({"", "u"}) + ".f32 " + P() + ", " + F() + ", " + F());
    if (Below(4) == 0)
      return Line(Pick({"and.pred ", "or.pred ", "xor.pred "}) + P() + ", " + P() + ", " + P());
    Line(Guard() + "setp." + compare + Pick({".s32 ", ".u32 "}) + P() + ", " + R() + ", " +
         Source());
  }

  // Words near each other, as in an unrolled loop, and parts of words.
  void Neighbours() {
    Line("and.b32 %k7, " + R() + ", " + Text(kInputWords - 8));
    Line("mad.wide.u32 %at, %k7, 4, %in");
    const int words = 2 + Below(4);
    for (int n = 0; n < words; ++n) {
      const std::string offset = ", [%at+" + Text(4 * Below(6)) + "]";
      Line(Below(6) == 0   ? Guard() + Pick({"ld.global.u8 ", "ld.global.s16 "}) + R() + offset
           : Below(2) != 0 ? "ld.global.u32 " + R() + offset
                           : "ld.global.f32 " + F() + offset);
      if (Below(3) == 0) Integer();
    }
    Line("and.b32 %k7, " + R() + ", " + Text(kScratchWords - 2));
    Line("mad.wide.u32 %at, %k7, 4, %scratch");
    if (Below(2) != 0) return Line(Guard() + "st.global.v2.u32 [%at], {" + R() + ", " + R() + "}");
    Line(Guard() + Pick({"st.global.u8 [%at+1], ", "st.global.u16 [%at+2], "}) + R());
  }

  void Memory() {
    if (Below(3) == 0) return Neighbours();
    const std::string index = R();
    if (Below(2) != 0) {
      Line("and.b32 %k7, " + index + ", " + Text(kInputWords - 1));
      Line("mad.wide.u32 %at, %k7, 4, %in");
      return Line(Guard() + (Below(2) != 0 ? "ld.global.u32 " + R() : "ld.global.f32 " + F()) +
                  ", [%at]");
    }
    Line("and.b32 %k7, " + index + ", " + Text(kScratchWords - 1));
    Line("mad.wide.u32 %at, %k7, 4, %scratch");
    Line(Guard() + (Below(2) != 0 ? "st.global.u32 [%at], " + R() : "st.global.f32 [%at], " + F()));
  }

  // What all threads of a block must reach together.
  void Together() {
    if (Below(2) != 0 && whole_warps_) {
      Line("shfl.sync." + Pick({"up", "down", "bfly", "idx"}) + ".b32 " + R() + "|" + P() + ", " +
           R() + ", " + Text(Below(32)) + ", " + Pick({"31", "0", "7199"}) + ", -1");
      return;
    }
    Line("bar.sync 0");
    Line("mov.u32 %k6, pad");
    Line("mad.lo.s32 %k7, %t, 4, %k6");
    Line("st.shared.u32 [%k7], " + R());
    Line("bar.sync 0");
    Line("xor.b32 %k7, %t, " + Text(Below(16)));
    Line("rem.u32 %k7, %k7, %u");
    Line("mad.lo.s32 %k7, %k7, 4, %k6");
    Line("ld.shared.u32 " + R() + ", [%k7]");
  }

  void Branch(int depth) {
    const std::string other = "ELSE" + Text(++labels_), end = "END" + Text(labels_);
    Line((Below(2) != 0 ? "@!" : "@") + P() + " bra " + other);
    Block(depth + 1, 5);
    if (Below(2) != 0) {
      Line("bra " + end);
      text_ += other + ":\n";
      Block(depth + 1, 5);
      text_ += end + ":\n";
    } else {
      text_ += other + ":\n";
    }
  }

  // Little but loads, and lanes leave one after another.
  void GatherLoop(int depth) {
    const std::string counter = "%k" + Text(depth), top = "TOP" + Text(++labels_);
    Line("and.b32 " + counter + ", " + R() + ", 15");
    Line("and.b32 %k7, " + R() + ", " + Text(kInputWords - 64));
    Line("mad.wide.u32 %at, %k7, 4, %in");
    text_ += top + ":\n";
    for (int n = 1 + Below(4); n > 0; --n) {
      Line((Below(2) != 0 ? "ld.global.u32 " + R() : "ld.global.f32 " + F()) + ", [%at+" +
           Text(4 * Below(8)) + "]");
      Below(2) != 0 ? Line("add.s32 " + R() + ", " + R() + ", " + R())
                    : Line("fma.rn.f32 " + F() + ", " + F() + ", " + F() + ", " + F());
    }
    Line("add.u64 %at, %at, 4");
    Line("sub.s32 " + counter + ", " + counter + ", 1");
    Line("setp.gt.s32 %q, " + counter + ", 0");
    Line("@%q bra " + top);
  }

  void Loop(int depth) {
    if (Below(3) == 0) return GatherLoop(depth);
    const std::string counter = "%k" + Text(depth), top = "TOP" + Text(++labels_);
    Line(Below(2) != 0 ? "and.b32 " + counter + ", " + R() + ", 7"
                       : "mov.u32 " + counter + ", " + Text(Below(9)));
    text_ += top + ":\n";
    Block(depth + 1, 5);
    Line("sub.s32 " + counter + ", " + counter + ", 1");
    Line("setp.gt.s32 %q, " + counter + ", 0");
    Line("@%q bra " + top);
  }

  void Block(int depth, int statements) {
    for (int n = 0; n < statements; ++n) {
      const int what = Below(20);
      if (what < 7) {
        Integer();
      } else if (what < 12) {
        Float();
      } else if (what < 14) {
        Predicate();
      } else if (what < 16) {
        Memory();
      } else if (what < 17 && depth == 0) {
        Together();
      } else if (what < 19 && depth < 3) {
        Branch(depth);
      } else if (depth < 3) {
        Loop(depth);
      }
    }
  }

  std::mt19937_64 random_;
  const bool whole_warps_;
  std::string text_;
  int labels_ = 0;
};

std::vector<uint32_t> Inputs(std::mt19937_64* random) {
  const uint32_t kOdd[] = {0,          0x80000000, 1,          0x807fffff, 0x7f800000, 0xff800000,
                           0x7fc00001, 0xffa00000, 0x3f800000, 0xbf800000, 0x7f7fffff, 0x00800000};
  std::vector<uint32_t> words(kInputWords);
  for (uint32_t& word : words) {
    const uint64_t bits = (*random)();
    const float small = static_cast<float>(static_cast<int>(bits >> 32) % 1000) * 0.25f;
    word = bits % 4 == 0   ? kOdd[(bits >> 8) % std::size(kOdd)]
           : bits % 4 == 1 ? static_cast<uint32_t>(bits >> 32)
           : bits % 4 == 2 ? __builtin_bit_cast(uint32_t, small)
                           : static_cast<uint32_t>(bits >> 8) & 63;
  }
  return words;
}

// f64 operations keep one operand's NaN: which one is the processor's choice.
void Canonicalise(std::vector<uint32_t>* words) {
  for (size_t thread = 0; thread + kOutputWords < words->size(); thread += kOutputWords + 1) {
    for (int n = 0; n < kDoubles; ++n) {
      uint32_t* low = words->data() + thread + kIntegers + kFloats + 2 * n;
      const uint64_t bits = low[0] | uint64_t{low[1]} << 32;
      if ((bits & ~(1ull << 63)) > 0x7ff0000000000000) low[0] = low[1] = 0x7ff80000;
    }
  }
}

struct Outcome {
  std::vector<uint32_t> out, scratch;
  std::string fault;
};

Outcome RunOnce(const std::string& ptx, const std::vector<uint32_t>& inputs, Dim3 block) {
  Machine machine(4u << 20);
  machine.Load(ptx);
  const size_t threads = 2 * block.Count();
  const uint64_t in = machine.Upload(inputs);
  const uint64_t out = machine.Allocate(threads * (kOutputWords + 1) * 4);
  const uint64_t scratch = machine.Allocate(threads * kScratchWords * 4);
  const std::optional<Fault> fault = machine.Run("fuzz", {2}, block, in, out, scratch);
  Outcome outcome;
  outcome.out = machine.Download<uint32_t>(out, threads * (kOutputWords + 1));
  outcome.scratch = machine.Download<uint32_t>(scratch, threads * kScratchWords);
  if (fault.has_value()) outcome.fault = fault->ToString();
  Canonicalise(&outcome.out);
  return outcome;
}

uint64_t Setting(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

TEST(DifferentialTest, RandomKernelsAreEqualInterpretedAndCompiled) {
  { Machine chooses_where_the_plugin_is(4096); }
  std::string error;
  ASSERT_TRUE(jit::CompilerWorks(&error)) << error;
  const Dim3 kBlocks[] = {{32}, {64}, {96}, {16, 16}, {48}, {33}, {8, 4}, {64, 2}};
  const uint64_t first = Setting("LANEWAY_FUZZ_SEED", 1);
  const uint64_t count = Setting("LANEWAY_FUZZ_KERNELS", 5);
  for (uint64_t seed = first; seed < first + count; ++seed) {
    std::mt19937_64 random(seed);
    const Dim3 block = kBlocks[seed % std::size(kBlocks)];
    const std::string ptx = Generator(seed, block.Count() % 32 == 0).Kernel();
    const std::vector<uint32_t> inputs = Inputs(&random);
    jit::UseExecutor(jit::Executor::kInterpreter, false);
    const Outcome interpreted = RunOnce(ptx, inputs, block);
    jit::UseExecutor(jit::Executor::kLlvm, false);
    const uint64_t before = jit::CompiledLaunches();
    const Outcome compiled = RunOnce(ptx, inputs, block);
    jit::UseExecutor(jit::Executor::kInterpreter, false);
    EXPECT_EQ(jit::CompiledLaunches(), before + 1) << "seed " << seed;
    EXPECT_EQ(interpreted.fault, compiled.fault) << "seed " << seed;
    ASSERT_EQ(interpreted.out, compiled.out) << "seed " << seed << "\n" << ptx;
    ASSERT_EQ(interpreted.scratch, compiled.scratch) << "seed " << seed << "\n" << ptx;
  }
}

}  // namespace
}  // namespace softgpu::testing
