// The vector handlers of this processor: the best of the instruction sets that simd/ was compiled
// for.
#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <string_view>
#include <unordered_map>

#include "base/find.h"
#include "softgpu/exec/handler_key.h"

namespace softgpu::exec {

#define SOFTGPU_DECLARE(isa)  \
  namespace isa {             \
  HandlerRows IntegerRows();  \
  HandlerRows BitsRows();     \
  HandlerRows FloatingRows(); \
  HandlerRows ApproxRows();   \
  HandlerRows HalfRows();     \
  HandlerRows CompareRows();  \
  HandlerRows ConvertRows();  \
  HandlerRows MemoryRows();   \
  HandlerRows PackRows();     \
  }
SOFTGPU_DECLARE(v1)
SOFTGPU_DECLARE(v3)
SOFTGPU_DECLARE(v4)

namespace {

class Table {
 public:
  Table() {
#define SOFTGPU_ALL(isa)                                                                \
  {                                                                                     \
    isa::IntegerRows, isa::BitsRows, isa::FloatingRows, isa::ApproxRows, isa::HalfRows, \
        isa::CompareRows, isa::ConvertRows, isa::MemoryRows, isa::PackRows              \
  }
    using Source = HandlerRows (*)();
#ifdef SOFTGPU_V1_ALONE
    static constexpr Source kSets[][9] = {SOFTGPU_ALL(v1)};
#else
    static constexpr Source kSets[][9] = {SOFTGPU_ALL(v1), SOFTGPU_ALL(v3), SOFTGPU_ALL(v4)};
#endif
    for (Source source : kSets[std::min(Level(), std::size(kSets) - 1)]) {
      const HandlerRows rows = source();
      for (size_t i = 0; i < rows.count; ++i) {
        by_key_.emplace(rows.rows[i].key, rows.rows[i].run);
        by_handler_.emplace(rows.rows[i].run, rows.rows[i].key);
      }
    }
  }

  uint32_t KeyOf(Handler handler) const { return base::FindOr(by_handler_, handler, 0); }

  Handler Find(uint32_t key) const { return base::FindOr(by_key_, key, nullptr); }

 private:
  // LANEWAY_SOFTGPU_ISA=v1|v3|v4 lowers it, for tests and comparisons.
  static size_t Level() {
    size_t level = 0;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
        __builtin_cpu_supports("bmi2")) {
      level = 1;
      if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
          __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
        level = 2;
      }
    }
    const char* wanted = std::getenv("LANEWAY_SOFTGPU_ISA");
    if (wanted == nullptr) return level;
    if (std::string_view(wanted) == "v1") return 0;
    if (std::string_view(wanted) == "v3" && level > 1) return 1;
    return level;
  }

  std::unordered_map<uint32_t, Handler> by_key_;
  std::unordered_map<Handler, uint32_t> by_handler_;
};

const Table& Rows() {
  static const Table* const table = new Table();
  return *table;
}

}  // namespace

Handler FindHandler(uint32_t key) { return Rows().Find(key); }

uint32_t KeyOf(Handler handler) { return Rows().KeyOf(handler); }

Handler FindHandlerBySize(Op op, Type type, int variant) {
  const Handler exact = FindHandler(Key(op, type, variant));
  if (exact != nullptr) return exact;
  switch (ptx::Bits(type)) {
    case 16:
      return FindHandler(Key(op, Type::kU16, variant));
    case 32:
      return FindHandler(Key(op, Type::kU32, variant));
    case 64:
      return FindHandler(Key(op, Type::kU64, variant));
    default:
      return nullptr;
  }
}

}  // namespace softgpu::exec
