// mma of every shape, wmma, and the instructions that move matrices, against plain loops over
// matrices of small integers, which every format here holds exactly.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "softgpu/exec/half_scalar.h"
#include "tests/softgpu/exec/machine.h"

namespace softgpu::testing {
namespace {

constexpr char kHeader[] = ".version 8.7\n.target sm_90\n.address_size 64\n";

int BitsOf(const std::string& type) {
  if (type == "e4m3" || type == "e5m2") return 8;
  if (type == "tf32") return 32;
  return std::stoi(type.substr(type.find_first_of("0123456789")));
}

// The code of a small integer in a format.
uint64_t Encode(const std::string& type, int value) {
  if (type == "f16") return exec::scalar::FloatToHalf(static_cast<float>(value));
  if (type == "bf16") return exec::scalar::FloatToBf16(static_cast<float>(value));
  if (type == "f32" || type == "tf32") {
    return __builtin_bit_cast(uint32_t, static_cast<float>(value));
  }
  if (type == "f64") return __builtin_bit_cast(uint64_t, static_cast<double>(value));
  if (type == "e4m3" || type == "e5m2") {
    for (uint32_t code = 0; code < 256; ++code) {
      const float is = exec::scalar::Fp8ToFloat(static_cast<uint8_t>(code), type == "e4m3" ? 4 : 5);
      if (is == static_cast<float>(value)) return code;
    }
  }
  return static_cast<uint64_t>(value) & ((1ull << BitsOf(type)) - 1);
}

double Decode(const std::string& type, uint64_t bits) {
  if (type == "f16") return exec::scalar::HalfToFloat(static_cast<uint16_t>(bits));
  if (type == "f32") return __builtin_bit_cast(float, static_cast<uint32_t>(bits));
  if (type == "f64") return __builtin_bit_cast(double, bits);
  return static_cast<int32_t>(bits);
}

std::vector<int> RandomValues(const std::string& type, size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  const bool is_unsigned = type[0] == 'u' || type[0] == 'b';
  std::vector<int> values;
  for (size_t n = 0; n < count; ++n) {
    const int value = static_cast<int>(random() % 8);
    values.push_back(type == "b1" ? value % 2 : is_unsigned ? value : value - 4);
  }
  return values;
}

struct Case {
  int m, n, k;
  std::string d, a, b, c, op;
};

std::string NameOf(const Case& t) {
  return "m" + std::to_string(t.m) + "n" + std::to_string(t.n) + "k" + std::to_string(t.k) + "." +
         t.d + "." + t.a + "." + t.b + "." + t.c;
}

std::vector<double> Product(const Case& t, const std::vector<int>& a, const std::vector<int>& b,
                            const std::vector<int>& c) {
  std::vector<double> d(t.m * t.n);
  for (int row = 0; row < t.m; ++row) {
    for (int column = 0; column < t.n; ++column) {
      int sum = c[row * t.n + column];
      for (int k = 0; k < t.k; ++k) {
        const int x = a[row * t.k + k], y = b[k * t.n + column];
        sum += t.op == ".xor.popc" ? x ^ y : x * y;
      }
      d[row * t.n + column] = sum;
    }
  }
  return d;
}

// Fragments as the ISA's figures have them: where element `e` of a lane lies.
struct At {
  int row, column;
};
At FactorA(const Case& t, int lane, int e) {
  const int per = t.a == "f64" ? 1 : 32 / BitsOf(t.a), r = e / per;
  const int halves = t.m / 8;
  return {lane / 4 + 8 * (r % halves), lane % 4 * per + e % per + 4 * per * (r / halves)};
}
At FactorB(const Case& t, int lane, int e) {
  const int per = t.b == "f64" ? 1 : 32 / BitsOf(t.b);
  return {lane % 4 * per + e % per + 4 * per * (e / per), lane / 4};
}
At Accumulator(int lane, int e) { return {lane / 4 + 8 * (e / 2), lane % 4 * 2 + e % 2}; }

// Registers of all lanes, one after another, as words of 4 bytes.
template <class F>
std::vector<uint32_t> Pack(const std::string& type, int elements, const std::vector<int>& values,
                           int columns, F at) {
  const int bits = BitsOf(type) == 64 ? 64 : BitsOf(type), words = elements * bits / 32;
  std::vector<uint32_t> packed(32 * words);
  for (int lane = 0; lane < 32; ++lane) {
    for (int e = 0; e < elements; ++e) {
      const At place = at(lane, e);
      const uint64_t code = Encode(type, values[place.row * columns + place.column]);
      const int bit = e * bits;
      packed[lane * words + bit / 32] |= static_cast<uint32_t>(code) << bit % 32;
      if (bits == 64) packed[lane * words + bit / 32 + 1] = static_cast<uint32_t>(code >> 32);
    }
  }
  return packed;
}

// "{%a0, %a1}" and the loads of these registers from [%l+lane's part of `parameter`].
std::string Registers(const std::string& prefix, int count) {
  std::string list;
  for (int r = 0; r < count; ++r) list += (r == 0 ? "{%" : ", %") + prefix + std::to_string(r);
  return list + "}";
}
std::string Move(const std::string& op, const std::string& prefix, int count, int bytes,
                 const std::string& parameter) {
  std::string text = "ld.param.u64 %at, [" + parameter + "];\nmad.wide.u32 %at, %lane, " +
                     std::to_string(count * bytes) + ", %at;\n";
  for (int r = 0; r < count; ++r) {
    const std::string place = "[%at+" + std::to_string(r * bytes) + "]";
    const std::string reg = "%" + prefix + std::to_string(r);
    text += op + ".b" + std::to_string(bytes * 8) + " " +
            (op[0] == 'l' ? reg + ", " + place : place + ", " + reg) + ";\n";
  }
  return text;
}

void CheckMma(const Case& t) {
  const std::vector<int> a = RandomValues(t.a, t.m * t.k, 1), b = RandomValues(t.b, t.k * t.n, 2);
  const std::vector<int> c = RandomValues("s32", t.m * t.n, 3);
  const auto bytes = [](const std::string& type) { return type == "f64" ? 8 : 4; };
  const auto registers = [&](const std::string& type, int elements) {
    return elements * BitsOf(type) / (8 * bytes(type)) / 32;
  };
  const int ra = registers(t.a, t.m * t.k), rb = registers(t.b, t.k * t.n);
  const int rc = registers(t.c, t.m * t.n), rd = registers(t.d, t.m * t.n);
  std::string text = kHeader;
  text +=
      ".visible .entry k(.param .u64 pa, .param .u64 pb, .param .u64 pc, .param .u64 pd) {\n"
      ".reg .b32 %lane; .reg .b64 %at;\n";
  for (const auto& [prefix, type] :
       {std::pair{"a", t.a}, std::pair{"b", t.b}, std::pair{"c", t.c}, std::pair{"d", t.d}}) {
    text += std::string(".reg .b") + std::to_string(bytes(type) * 8) + " %" + prefix + "<8>;\n";
  }
  text += "mov.u32 %lane, %tid.x;\n" + Move("ld.global", "a", ra, bytes(t.a), "pa") +
          Move("ld.global", "b", rb, bytes(t.b), "pb") +
          Move("ld.global", "c", rc, bytes(t.c), "pc") + "mma.sync.aligned.m" +
          std::to_string(t.m) + "n8k" + std::to_string(t.k) + ".row.col." + t.d + "." + t.a + "." +
          t.b + "." + t.c + t.op + " " + Registers("d", rd) + ", " + Registers("a", ra) + ", " +
          Registers("b", rb) + ", " + Registers("c", rc) + ";\n" +
          Move("st.global", "d", rd, bytes(t.d), "pd") + "ret; }\n";
  Machine machine;
  machine.Load(text);
  const uint64_t pa = machine.Upload(
      Pack(t.a, t.m * t.k / 32, a, t.k, [&](int lane, int e) { return FactorA(t, lane, e); }));
  const uint64_t pb = machine.Upload(
      Pack(t.b, t.k * t.n / 32, b, t.n, [&](int lane, int e) { return FactorB(t, lane, e); }));
  const uint64_t pc = machine.Upload(Pack(t.c, t.m * t.n / 32, c, t.n, Accumulator));
  const uint64_t pd = machine.Allocate(4096);
  const std::optional<Fault> fault = machine.Run("k", {1}, {32}, pa, pb, pc, pd);
  ASSERT_FALSE(fault.has_value()) << NameOf(t) << fault->ToString();
  const std::vector<double> want = Product(t, a, b, c);
  const int width = BitsOf(t.d) / 8, elements = t.m * t.n / 32;
  const std::vector<uint8_t> got = machine.Download<uint8_t>(pd, 4096);
  for (int lane = 0; lane < 32; ++lane) {
    for (int e = 0; e < elements; ++e) {
      uint64_t bits = 0;
      std::memcpy(&bits, &got[(lane * elements + e) * width], width);
      const At place = Accumulator(lane, e);
      ASSERT_EQ(Decode(t.d, bits), want[place.row * t.n + place.column])
          << NameOf(t) << " lane " << lane << " element " << e;
    }
  }
}

TEST(Matrix, MmaOfEveryShape) {
  std::vector<Case> cases;
  for (int k : {8, 16}) {
    cases.push_back({16, 8, k, "f32", "f16", "f16", "f32", ""});
    cases.push_back({16, 8, k, "f16", "f16", "f16", "f16", ""});
    cases.push_back({16, 8, k, "f32", "bf16", "bf16", "f32", ""});
    cases.push_back({16, 8, k / 2, "f32", "tf32", "tf32", "f32", ""});
  }
  for (int k : {16, 32}) {
    cases.push_back({16, 8, k, "s32", "s8", "u8", "s32", ""});
    cases.push_back({16, 8, 2 * k, "s32", "u4", "s4", "s32", ""});
    cases.push_back({16, 8, 8 * k, "s32", "b1", "b1", "s32", ".xor.popc"});
    cases.push_back({16, 8, 8 * k, "s32", "b1", "b1", "s32", ".and.popc"});
    cases.push_back({16, 8, k, "f32", "e4m3", "e5m2", "f32", ""});
    cases.push_back({16, 8, k, "f16", "e5m2", "e5m2", "f16", ""});
  }
  cases.push_back({8, 8, 16, "s32", "u8", "s8", "s32", ""});
  cases.push_back({8, 8, 32, "s32", "s4", "s4", "s32", ""});
  cases.push_back({8, 8, 128, "s32", "b1", "b1", "s32", ".xor.popc"});
  cases.push_back({8, 8, 4, "f64", "f64", "f64", "f64", ""});
  for (int k : {4, 8, 16}) cases.push_back({16, 8, k, "f64", "f64", "f64", "f64", ""});
  for (const Case& t : cases) CheckMma(t);
}

// A matrix in memory, by rows or columns, with `stride` elements between them.
std::vector<uint8_t> InMemory(const std::string& type, const std::vector<int>& values, int rows,
                              int columns, bool by_columns, int stride) {
  const int bits = BitsOf(type);
  std::vector<uint8_t> memory(static_cast<size_t>(stride) * std::max(rows, columns) * bits / 8 +
                              16);
  for (int row = 0; row < rows; ++row) {
    for (int column = 0; column < columns; ++column) {
      const int index = by_columns ? column * stride + row : row * stride + column;
      const uint64_t code = Encode(type, values[row * columns + column]);
      if (bits >= 8) {
        std::memcpy(&memory[index * bits / 8], &code, bits / 8);
      } else {
        memory[index * bits / 8] |= static_cast<uint8_t>(code << index * bits % 8);
      }
    }
  }
  return memory;
}

struct WmmaRegisters {
  int a, b, c, d;
};

void CheckWmma(const Case& t, WmmaRegisters r, bool columns_of_d) {
  const std::vector<int> a = RandomValues(t.a, t.m * t.k, 4), b = RandomValues(t.b, t.k * t.n, 5);
  const std::vector<int> c = RandomValues("s32", t.m * t.n, 6);
  const std::string shape =
      "m" + std::to_string(t.m) + "n" + std::to_string(t.n) + "k" + std::to_string(t.k);
  const int sa = 2 * t.k, sb = 2 * t.k, sc = t.n, sd = columns_of_d ? t.m + 8 : t.n + 8;
  const std::string width = t.a == "f64" ? ".b64" : ".b32";
  const std::string factors =
      t.a == "f16" ? "." + t.d + "." + t.c : "." + t.d + "." + t.a + "." + t.b + "." + t.c;
  const std::string layout = columns_of_d ? ".col." : ".row.";
  std::string text = std::string(kHeader) +
                     ".visible .entry k(.param .u64 pa, .param .u64 pb, .param .u64 pc, .param "
                     ".u64 pd) {\n.reg .b64 %l<4>;\n";
  for (const char* prefix : {"a", "b", "c", "d"}) {
    text += ".reg " + width + " %" + prefix + "<8>;\n";
  }
  text +=
      "ld.param.u64 %l0, [pa]; ld.param.u64 %l1, [pb]; ld.param.u64 %l2, [pc];\n"
      "ld.param.u64 %l3, [pd];\nwmma.load.a.sync.aligned.row." +
      shape + ".global." + t.a + " " + Registers("a", r.a) + ", [%l0], " + std::to_string(sa) +
      ";\nwmma.load.b.sync.aligned.col." + shape + "." + t.b + " " + Registers("b", r.b) +
      ", [%l1], " + std::to_string(sb) + ";\nwmma.load.c.sync.aligned.row." + shape + ".global." +
      t.c + " " + Registers("c", r.c) + ", [%l2];\nwmma.mma" + (t.op.empty() ? "" : t.op) +
      ".sync.aligned.row.col." + shape + factors + " " + Registers("d", r.d) + ", " +
      Registers("a", r.a) + ", " + Registers("b", r.b) + ", " + Registers("c", r.c) +
      ";\nwmma.store.d.sync.aligned" + layout + shape + ".global." + t.d + " [%l3], " +
      Registers("d", r.d) + ", " + std::to_string(sd) + ";\nret; }\n";
  Machine machine;
  machine.Load(text);
  const uint64_t pa = machine.Upload(InMemory(t.a, a, t.m, t.k, false, sa));
  const uint64_t pb = machine.Upload(InMemory(t.b, b, t.k, t.n, true, sb));
  const uint64_t pc = machine.Upload(InMemory(t.c, c, t.m, t.n, false, sc));
  const uint64_t pd = machine.Allocate(16384);
  const std::optional<Fault> fault = machine.Run("k", {1}, {32}, pa, pb, pc, pd);
  ASSERT_FALSE(fault.has_value()) << NameOf(t) << fault->ToString();
  const std::vector<double> want = Product(t, a, b, c);
  const std::vector<uint8_t> got = machine.Download<uint8_t>(pd, 16384);
  const int bytes = BitsOf(t.d) / 8;
  for (int row = 0; row < t.m; ++row) {
    for (int column = 0; column < t.n; ++column) {
      uint64_t bits = 0;
      std::memcpy(&bits, &got[(columns_of_d ? column * sd + row : row * sd + column) * bytes],
                  bytes);
      ASSERT_EQ(Decode(t.d, bits), want[row * t.n + column])
          << NameOf(t) << " at " << row << ", " << column;
    }
  }
}

TEST(Matrix, WmmaOfEveryShape) {
  CheckWmma({16, 16, 16, "f32", "f16", "f16", "f32", ""}, {8, 8, 8, 8}, false);
  CheckWmma({16, 16, 16, "f16", "f16", "f16", "f16", ""}, {8, 8, 4, 4}, true);
  CheckWmma({32, 8, 16, "f32", "f16", "f16", "f16", ""}, {8, 8, 4, 8}, false);
  CheckWmma({8, 32, 16, "f16", "f16", "f16", "f32", ""}, {8, 8, 8, 4}, false);
  CheckWmma({16, 16, 16, "f32", "bf16", "bf16", "f32", ""}, {4, 4, 8, 8}, true);
  CheckWmma({8, 32, 16, "f32", "bf16", "bf16", "f32", ""}, {2, 8, 8, 8}, false);
  CheckWmma({16, 16, 8, "f32", "tf32", "tf32", "f32", ""}, {4, 4, 8, 8}, false);
  CheckWmma({16, 16, 16, "s32", "s8", "s8", "s32", ""}, {2, 2, 8, 8}, false);
  CheckWmma({32, 8, 16, "s32", "u8", "u8", "s32", ""}, {4, 1, 8, 8}, true);
  CheckWmma({8, 8, 32, "s32", "s4", "s4", "s32", ""}, {1, 1, 2, 2}, false);
  CheckWmma({8, 8, 128, "s32", "b1", "b1", "s32", ".xor.popc"}, {1, 1, 2, 2}, false);
  CheckWmma({8, 8, 4, "f64", "f64", "f64", "f64", ""}, {1, 1, 2, 2}, false);
}

// ldmatrix, stmatrix and movmatrix on four matrices of numbered elements.
TEST(Matrix, MatricesMoveAndTranspose) {
  Machine machine;
  machine.Load(std::string(kHeader) +
               ".visible .entry k(.param .u64 p) {\n.reg .b32 %r<12>; .reg .b64 %l<4>;\n"
               ".shared .align 16 .b8 in[512]; .shared .align 16 .b8 out[512];\n"
               ".shared .align 16 .b8 turned[512];\n"
               "ld.param.u64 %l0, [p]; mov.u32 %r0, %tid.x; shl.b32 %r1, %r0, 4;\n"
               "mad.wide.u32 %l1, %r0, 16, %l0; ld.global.v4.b32 {%r2, %r3, %r4, %r5}, [%l1];\n"
               "mov.u32 %r6, in; add.u32 %r6, %r6, %r1;\n"
               "st.shared.v4.b32 [%r6], {%r2, %r3, %r4, %r5}; bar.warp.sync 0xffffffff;\n"
               "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r2, %r3, %r4, %r5}, [%r6];\n"
               "mov.u32 %r7, out; add.u32 %r7, %r7, %r1;\n"
               "stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%r7], {%r2, %r3, %r4, %r5};\n"
               "movmatrix.sync.aligned.m8n8.trans.b16 %r8, %r2;\n"
               "mov.u32 %r9, turned; add.u32 %r9, %r9, %r1;\n"
               "stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r9], {%r8};\n"
               "bar.warp.sync 0xffffffff; ld.shared.v4.b32 {%r2, %r3, %r4, %r5}, [%r7];\n"
               "st.global.v4.b32 [%l1+512], {%r2, %r3, %r4, %r5};\n"
               "ld.shared.v4.b32 {%r2, %r3, %r4, %r5}, [%r9];\n"
               "st.global.v4.b32 [%l1+1024], {%r2, %r3, %r4, %r5}; ret; }\n");
  std::vector<uint16_t> values(768);
  for (size_t n = 0; n < 256; ++n) values[n] = static_cast<uint16_t>(n);
  const uint64_t address = machine.Upload(values);
  ASSERT_FALSE(machine.Run("k", {1}, {32}, address).has_value());
  values = machine.Download<uint16_t>(address, 768);
  for (int n = 0; n < 256; ++n) {
    const int transposed = n / 64 * 64 + n % 8 * 8 + n / 8 % 8;
    ASSERT_EQ(values[256 + n], transposed) << n;
    if (n < 64) {
      ASSERT_EQ(values[512 + n], transposed) << n;
    }
  }
}

}  // namespace
}  // namespace softgpu::testing
