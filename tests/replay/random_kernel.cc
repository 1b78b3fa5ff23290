#include "tests/replay/random_kernel.h"

namespace replay::testing {
namespace {

constexpr const char* kBefore = R"(.version 8.3
.target sm_80
.address_size 64
.func (.param .b64 result) advance(.param .b64 at, .param .b32 by)
{
  .reg .b64 %x<4>; .reg .b32 %y<2>;
  ld.param.b64 %x1, [at]; ld.param.b32 %y1, [by];
  mul.wide.u32 %x2, %y1, 4; add.s64 %x3, %x1, %x2;
  st.param.b64 [result], %x3; ret;
}
.visible .entry k(.param .u64 p0, .param .u64 p1, .param .u64 p2, .param .u64 p3,
                  .param .align 8 .b8 s[16], .param .u32 n, .param .u64 wide)
{
  .reg .pred %p<200>; .reg .b32 %r<400>; .reg .b64 %rd<400>;
  .local .align 8 .b8 mine[64]; .shared .align 8 .b8 ours[512];
)";

}  // namespace

std::string RandomKernel::Text() {
  for (int k = 0; k < kBuffers; ++k) {
    addresses_.push_back(New64());
    Line("ld.param.u64 " + addresses_.back() + ", [p" + std::to_string(k) + "];");
  }
  for (const char* from : {"%tid.x", "%ctaid.x"}) {
    indices_.push_back(New32());
    Line("mov.u32 " + indices_.back() + ", " + from + ";");
  }
  indices_.push_back(New32());
  Line("ld.param.u32 " + indices_.back() + ", [n];");
  wide_.push_back(New64());
  Line("ld.param.u64 " + wide_.back() + ", [wide];");
  data_ = indices_;
  const uint64_t count = sweeps_ ? 1 + Below(8) : 4 + Below(16);
  for (uint64_t k = 0; k < count; ++k) {
    if (sweeps_ && Below(2) == 0) {
      Sweep();
    } else {
      Statement();
    }
  }
  if (!sweeps_) Store();
  return std::string(kBefore) + body_ + "  ret;\n}\n";
}

void RandomKernel::Statement() {
  switch (Below(14)) {
    case 0:
    case 1:
      return Index();
    case 2:
      return WideIndex();
    case 3:
    case 4:
      return Address();
    case 5:
      return Choose();
    case 6:
      return Keep();
    case 7:
      return Halves();
    case 8:
      return Loop();
    case 9:
      return ThroughFunction();
    case 10:
    case 11:
      return Load();
    case 12:
      return Store();
    default:
      return Update();
  }
}

// Stores at an index of the thread, for all threads or for those within bounds.
void RandomKernel::Sweep() {
  const std::string index = SweptIndex(), address = New64(), label = "S" + std::to_string(label_++);
  const uint64_t words = 1 + Below(2), step = Below(8) == 0 ? 16 : 4 * words;
  Line("mad.wide.u32 " + address + ", " + index + ", " + std::to_string(step) + ", %rd" +
       std::to_string(1 + Below(kBuffers)) + ";");
  const std::string bound = Below(3) == 0 ? "" : Bound(index);
  const bool skips = !bound.empty() && Below(2) == 0;
  const std::string guard = bound.empty() || skips ? "" : "@" + bound + " ";
  if (skips) {
    Line("@" + (bound[0] == '!' ? bound.substr(1) : "!" + bound) + " bra " + label + ";");
  }
  const std::string space = Below(2) == 0 ? ".global" : "";
  const uint64_t first = 8 * Below(4), count = step == 16 ? 2 + Below(2) : 1;
  for (uint64_t k = 0; k < count; ++k) {
    const std::string place = "[" + address + "+" + std::to_string(first + 8 * k) + "]";
    const bool pairs = words == 2 || count > 1;
    Line(guard + "st" + space + (pairs ? ".v2" : "") + ".u32 " + place + ", " +
         (pairs ? "{" + Any(data_) + ", " + Any(data_) + "}" : Any(data_)) + ";");
  }
  if (skips) body_ += label + ":\n";
}

// Below 64.
std::string RandomKernel::SweptIndex() {
  const std::string x = New32(), other = New32(), index = New32();
  static const char* const kOthers[] = {"%ctaid.x", "%tid.y"};
  Line("mov.u32 " + x + ", %tid.x;");
  Line(std::string("mov.u32 ") + other + ", " + kOthers[Below(2)] + ";");
  switch (Below(6)) {
    case 0:
      Line("sub.u32 " + index + ", 31, " + x + ";");
      break;
    case 1:
      Line("mad.lo.u32 " + index + ", " + x + ", 2, " + other + ";");
      break;
    case 2:
      Line("shl.b32 " + index + ", " + x + ", 1;");
      break;
    case 3:
      Line("add.u32 " + index + ", " + x + ", " + std::to_string(Below(4)) + ";");
      break;
    default: {
      const std::string size = New32();
      Line("mov.u32 " + size + ", %ntid.x;");
      Line("mad.lo.u32 " + index + ", " + other + ", " + size + ", " + x + ";");
    }
  }
  return index;
}

// A predicate that bounds the index, or its opposite.
std::string RandomKernel::Bound(const std::string& index) {
  const std::string one = Comparison(index);
  if (Below(3) != 0) return Below(2) == 0 ? one : "!" + one;
  static const char* const kWays[] = {"and.pred ", "or.pred "};
  const std::string other = Comparison(Below(2) == 0 ? index : SweptIndex());
  const std::string both = NewPredicate();
  Line(kWays[Below(2)] + both + ", " + one + ", " + other + ";");
  return Below(2) == 0 ? both : "!" + both;
}

std::string RandomKernel::Comparison(const std::string& index) {
  static const char* const kComparisons[] = {"lt.u32", "le.s32", "gt.s32", "ge.u32",
                                             "lo.u32", "hs.u32", "ne.u32", "lt.s32"};
  const std::string predicate = NewPredicate();
  const std::string limit = Below(2) == 0 ? indices_[2] : std::to_string(Below(40));
  const bool swapped = limit[0] == '%' && Below(4) == 0;
  Line(std::string("setp.") + kComparisons[Below(8)] + " " + predicate + ", " +
       (swapped ? limit : index) + ", " + (swapped ? index : limit) + ";");
  return predicate;
}

// Of numbers below 32, a number below 32.
void RandomKernel::Index() {
  static const char* const kOperations[] = {"add.u32", "mul.lo.u32", "xor.b32",
                                            "sub.u32", "min.u32",    "max.s32",
                                            "shl.b32", "shr.u32",    "rem.u32"};
  const std::string raw = New32(), result = New32(), operation = kOperations[Below(9)];
  const bool constant = operation == "rem.u32" || operation[0] == 's' || Below(2) == 0;
  Line(operation + " " + raw + ", " + Any(indices_) + ", " +
       (constant && operation != "sub.u32" ? std::to_string(1 + Below(4)) : Any(indices_)) + ";");
  Line("and.b32 " + result + ", " + raw + ", 31;");
  indices_.push_back(result);
}

void RandomKernel::WideIndex() {
  const std::string result = New64();
  switch (Below(3)) {
    case 0:
      Line("cvt.u64.u32 " + result + ", " + Any(indices_) + ";");
      break;
    case 1: {
      const std::string raw = New64();
      Line("ld.global.u64 " + raw + ", [" + Any(addresses_) + "+" + std::to_string(8 * Below(8)) +
           "];");
      Line("and.b64 " + result + ", " + raw + ", 31;");
      break;
    }
    default: {
      const std::string sum = New64();
      Line("add.s64 " + sum + ", " + Any(wide_) + ", " + Any(wide_) + ";");
      Line("shr.u64 " + result + ", " + sum + ", 1;");
      break;
    }
  }
  wide_.push_back(result);
}

// Moves an address by less than 128 bytes, eight of them aligned.
void RandomKernel::Address() {
  const std::string result = New64(), from = Any(addresses_);
  switch (Below(5)) {
    case 0: {
      const std::string sum = New64();
      Line("mad.wide.u32 " + sum + ", " + Any(indices_) + ", 4, " + from + ";");
      Line("and.b64 " + result + ", " + sum + ", -8;");
      break;
    }
    case 1: {
      const std::string scaled = New64();
      Line("shl.b64 " + scaled + ", " + Any(wide_) + ", 3;");
      Line("add.s64 " + result + ", " + from + ", " + scaled + ";");
      break;
    }
    case 2: {
      // Another buffer by the distance to it.
      const std::string distance = New64();
      Line("sub.s64 " + distance + ", " + Any(addresses_) + ", " + from + ";");
      Line("add.s64 " + result + ", " + from + ", " + distance + ";");
      break;
    }
    case 3: {
      const std::string at = New64();
      Line("mov.b64 " + at + ", s;");
      Line("ld.param.u64 " + result + ", [" + at + "+" + std::to_string(8 * Below(2)) + "];");
      break;
    }
    default:
      Line("add.s64 " + result + ", " + from + ", " + std::to_string(8 * Below(8)) + ";");
  }
  addresses_.push_back(result);
}

void RandomKernel::Choose() {
  const std::string result = New64(), label = "L" + std::to_string(label_++);
  const std::string predicate = "%p" + std::to_string(1 + Below(60));
  Line("setp.lt.u32 " + predicate + ", " + Any(indices_) + ", " + Any(indices_) + ";");
  if (Below(2) == 0) {
    Line("selp.b64 " + result + ", " + Any(addresses_) + ", " + Any(addresses_) + ", " + predicate +
         ";");
  } else {
    Line("mov.u64 " + result + ", " + Any(addresses_) + ";");
    Line("@" + predicate + " bra " + label + ";");
    Line("mov.u64 " + result + ", " + Any(addresses_) + ";");
    body_ += label + ":\n";
  }
  addresses_.push_back(result);
}

// Through memory: local by its name or its address, shared, or global.
void RandomKernel::Keep() {
  const std::string result = New64(), from = Any(addresses_), at = New64();
  const std::string slot = std::to_string(8 * Below(8));
  switch (Below(6)) {
    case 0:
      Line("st.local.u64 [mine+" + slot + "], " + from + ";");
      Line("ld.local.u64 " + result + ", [mine+" + slot + "];");
      break;
    case 1: {
      const std::string generic = New64();
      Line("mov.u64 " + at + ", mine;");
      Line("cvta.local.u64 " + generic + ", " + at + ";");
      Line("st.u64 [" + generic + "+" + slot + "], " + from + ";");
      Line("ld.u64 " + result + ", [" + generic + "+" + slot + "];");
      break;
    }
    case 2:
    case 3: {
      const std::string lane = New32(), byte = New32(), base = New32();
      Line("mov.u32 " + lane + ", %tid.x;");
      Line("shl.b32 " + byte + ", " + lane + ", 3;");
      Line("mov.u32 " + base + ", ours;");
      Line("add.u32 " + byte + ", " + byte + ", " + base + ";");
      Line("st.shared.u64 [" + byte + "], " + from + ";");
      Line("ld.shared.u64 " + result + ", [" + byte + "];");
      break;
    }
    case 4: {
      // Where no number is read from, or an index would be an address.
      const std::string lane = New32();
      Line("mov.u32 " + lane + ", %tid.x;");
      Line("mad.wide.u32 " + at + ", " + lane + ", 8, %rd4;");
      Line("st.global.u64 [" + at + "+1536], " + from + ";");
      Line("ld.global.u64 " + result + ", [" + at + "+1536];");
      break;
    }
    default:
      Line("shfl.sync.idx.b32 " + New32() + ", " + Any(indices_) + ", 0, 31, -1;");
      Line("mov.u64 " + result + ", " + from + ";");
  }
  addresses_.push_back(result);
}

void RandomKernel::Halves() {
  const std::string low = New32(), high = New32(), result = New64();
  Line("mov.b64 {" + low + ", " + high + "}, " + Any(addresses_) + ";");
  Line("mov.b64 " + result + ", {" + low + ", " + high + "};");
  addresses_.push_back(result);
}

// A pointer that walks.
void RandomKernel::Loop() {
  const std::string at = New64(), count = New32(), label = "L" + std::to_string(label_++);
  const std::string predicate = "%p" + std::to_string(1 + Below(60));
  Line("mov.u64 " + at + ", " + Any(addresses_) + ";");
  Line("mov.u32 " + count + ", 0;");
  body_ += label + ":\n";
  Line(Below(2) == 0 ? "ld.global.u32 " + New32() + ", [" + at + "];"
                     : "st.global.u32 [" + at + "], " + Any(data_) + ";");
  Line("add.s64 " + at + ", " + at + ", 8;");
  Line("add.u32 " + count + ", " + count + ", 1;");
  Line("setp.lt.u32 " + predicate + ", " + count + ", 3;");
  Line("@" + predicate + " bra " + label + ";");
}

void RandomKernel::ThroughFunction() {
  const std::string result = New64();
  const std::string by = New32();
  Line("shl.b32 " + by + ", " + Any(indices_) + ", 1;");
  Line("{ .param .b64 at; .param .b32 by; .param .b64 out;");
  Line("st.param.b64 [at], " + Any(addresses_) + "; st.param.b32 [by], " + by + ";");
  Line("call (out), advance, (at, by);");
  Line("ld.param.b64 " + result + ", [out]; }");
  addresses_.push_back(result);
}

std::string RandomKernel::Place() {
  return "[" + Any(addresses_) + "+" + std::to_string(8 * Below(6)) + "]";
}

void RandomKernel::Load() {
  const std::string result = New32(), space = Below(2) == 0 ? ".global" : "";
  switch (Below(3)) {
    case 0:
      Line("ld" + space + ".u32 " + result + ", " + Place() + ";");
      break;
    case 1:
      Line("ld" + space + ".v2.u32 {" + result + ", " + New32() + "}, " + Place() + ";");
      break;
    default:
      Line("ld" + space + ".u8 " + result + ", " + Place() + ";");
  }
  data_.push_back(result);
  const std::string index = New32();
  Line("and.b32 " + index + ", " + result + ", 31;");
  indices_.push_back(index);
}

void RandomKernel::Store() {
  const std::string space = Below(2) == 0 ? ".global" : "";
  if (Below(2) == 0) return Line("st" + space + ".u32 " + Place() + ", " + Any(data_) + ";");
  Line("st" + space + ".v2.u32 " + Place() + ", {" + Any(data_) + ", " + Any(data_) + "};");
}

void RandomKernel::Update() {
  if (Below(2) == 0) return Line("red.global.add.u32 " + Place() + ", " + Any(data_) + ";");
  const std::string old = New32();
  Line("atom.global.xor.b32 " + old + ", " + Place() + ", " + Any(data_) + ";");
  data_.push_back(old);
}

}  // namespace replay::testing
