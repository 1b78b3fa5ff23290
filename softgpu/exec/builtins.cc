// Which built-in function a call means; vprintf, __assertfail and cudaGraphSetConditional.
#include <cinttypes>
#include <cstring>
#include <memory>

#include "softgpu/exec/builtins.h"
#include "softgpu/exec/handlers.h"
#include "softgpu/exec/memory_access.h"

namespace softgpu::exec {
namespace {

constexpr size_t kTextBytesMax = 64 << 10;  // of one formatted line or one string
constexpr int kWidthMax = 4096;

bool Read(const Inst* ip, Warp* w, uint32_t lane, uint64_t address, void* to, uint32_t bytes) {
  const std::byte* at =
      Resolve(w, ip, lane, address, bytes, static_cast<uint8_t>(ptx::Space::kGeneric), false);
  if (at == nullptr) return false;
  std::memcpy(to, at, bytes);
  return true;
}

// A zero-terminated string; what a page fault leaves behind is a plain buffer, so none is held
// here.
bool ReadString(const Inst* ip, Warp* w, uint32_t lane, uint64_t address, std::string* out) {
  // On the heap: thread-local storage of a library that is opened late must be small.
  static thread_local const std::unique_ptr<char[]> buffer(new char[kTextBytesMax]);
  size_t length = 0;
  for (; length < kTextBytesMax; ++length) {
    if (!Read(ip, w, lane, address + length, &buffer[length], 1)) return false;
    if (buffer[length] == '\0') break;
  }
  out->assign(buffer.get(), length);
  return true;
}

// Walks a format and its packed arguments: 4- and 8-byte values, each at its own alignment.
class Formatter {
 public:
  Formatter(const Inst* ip, Warp* w, uint32_t lane, uint64_t arguments)
      : ip_(ip), w_(w), lane_(lane), at_(arguments) {}

  bool Run(const std::string& format, std::string* out) {
    size_t i = 0;
    while (i < format.size() && out->size() < kTextBytesMax) {
      if (format[i] != '%') {
        *out += format[i++];
      } else if (!Conversion(format, &i, out)) {
        return false;
      }
    }
    return true;
  }

 private:
  bool Take(uint32_t bytes, uint64_t* value) {
    at_ = (at_ + bytes - 1) / bytes * bytes;
    *value = 0;
    const bool ok = Read(ip_, w_, lane_, at_, value, bytes);
    at_ += bytes;
    return ok;
  }

  bool Number(const std::string& format, size_t* i, std::string* spec) {
    int value = 0;
    if (format[*i] == '*') {
      uint64_t taken;
      if (!Take(4, &taken)) return false;
      value = static_cast<int32_t>(taken);
      ++*i;
    } else {
      while (*i < format.size() && format[*i] >= '0' && format[*i] <= '9') {
        value = std::min(value * 10 + (format[(*i)++] - '0'), kWidthMax);
      }
    }
    *spec += std::to_string(std::max(std::min(value, kWidthMax), -kWidthMax));
    return true;
  }

  bool Conversion(const std::string& format, size_t* i, std::string* out) {
    std::string spec = "%";
    ++*i;
    while (*i < format.size() && std::strchr("-+ #0", format[*i]) != nullptr)
      spec += format[(*i)++];
    const auto digit = [&] {
      return *i < format.size() && (format[*i] == '*' || (format[*i] >= '0' && format[*i] <= '9'));
    };
    if (digit() && !Number(format, i, &spec)) return false;
    if (*i < format.size() && format[*i] == '.') {
      spec += '.';
      ++*i;
      if (digit() && !Number(format, i, &spec)) return false;
    }
    bool wide = false;
    while (*i < format.size() && std::strchr("hlLzjt", format[*i]) != nullptr) {
      wide = wide || format[*i] != 'h';
      ++*i;
    }
    if (*i >= format.size()) return true;
    return Emit(spec, format[(*i)++], wide, out);
  }

  bool Emit(const std::string& spec, char letter, bool wide, std::string* out) {
    if (letter == '%') {
      *out += '%';
      return true;
    }
    uint64_t value = 0;
    char text[kWidthMax + 512];
    if (std::strchr("diouxXc", letter) != nullptr) {
      if (!Take(wide ? 8 : 4, &value)) return false;
      if (letter == 'c') {
        std::snprintf(text, sizeof text, (spec + 'c').c_str(), static_cast<int>(value));
      } else if (letter == 'd' || letter == 'i') {
        const int64_t number = wide ? static_cast<int64_t>(value) : static_cast<int32_t>(value);
        std::snprintf(text, sizeof text, (spec + PRId64).c_str(), number);
      } else {
        std::snprintf(text, sizeof text, (spec + "l" + letter).c_str(), value);
      }
    } else if (std::strchr("eEfFgGaA", letter) != nullptr) {
      if (!Take(8, &value)) return false;
      std::snprintf(text, sizeof text, (spec + letter).c_str(), __builtin_bit_cast(double, value));
    } else if (letter == 'p') {
      if (!Take(8, &value)) return false;
      std::snprintf(text, sizeof text, (spec + 'p').c_str(), reinterpret_cast<void*>(value));
    } else if (letter == 's') {
      std::string string;
      if (!Take(8, &value) || !ReadString(ip_, w_, lane_, value, &string)) return false;
      std::snprintf(text, sizeof text, (spec + 's').c_str(), string.c_str());
    } else {
      *out += spec + letter;
      return true;
    }
    *out += text;
    return true;
  }

  const Inst* ip_;
  Warp* w_;
  uint32_t lane_;
  uint64_t at_;
};

}  // namespace

uint64_t Argument(const Warp* w, uint32_t lane, const CallPlan& plan, size_t k) {
  uint64_t value = 0;
  if (k >= plan.arguments.size()) return 0;
  const std::byte* local = w->local + size_t{lane} * w->local_stride + w->frame->local_base;
  std::memcpy(&value, local + plan.arguments[k].offset,
              std::min<uint32_t>(plan.arguments[k].bytes, 8));
  return value;
}

void SetResult(Warp* w, uint32_t lane, const CallPlan& plan, uint64_t value) {
  if (plan.results.empty()) return;
  std::byte* local = w->local + size_t{lane} * w->local_stride + w->frame->local_base;
  std::memcpy(local + plan.results[0].offset, &value, std::min<uint32_t>(plan.results[0].bytes, 8));
}

bool CallBuiltin(const Inst* ip, Warp* w, const CallPlan& plan) {
  switch (plan.builtin) {
    case ptx::Builtin::kPrintf:
      return CallPrintf(ip, w, plan);
    case ptx::Builtin::kMalloc:
      return CallMalloc(ip, w, plan);
    case ptx::Builtin::kFree:
      return CallFree(ip, w, plan);
    case ptx::Builtin::kMemcpy:
      return CallMemcpy(ip, w, plan);
    case ptx::Builtin::kMemset:
      return CallMemset(ip, w, plan);
    case ptx::Builtin::kSetCondition:
      return CallSetCondition(ip, w, plan);
    default:
      return CallAssert(ip, w, plan);
  }
}

bool CallPrintf(const Inst* ip, Warp* w, const CallPlan& plan) {
  w->current = ip;
  for (uint32_t m = w->mask; m != 0; m &= m - 1) {
    const uint32_t lane = __builtin_ctz(m);
    std::string format, text;
    if (!ReadString(ip, w, lane, Argument(w, lane, plan, 0), &format)) return false;
    Formatter formatter(ip, w, lane, Argument(w, lane, plan, 1));
    if (!formatter.Run(format, &text)) return false;
    const Launch& launch = *w->block->state->launch;
    if (launch.print) launch.print(text);
    if (plan.results.empty()) continue;
    // The number of conversions, as the CUDA guide says.
    uint32_t conversions = 0;
    for (size_t i = 0; i + 1 < format.size(); ++i) {
      if (format[i] != '%') continue;
      conversions += format[i + 1] != '%';
      i += format[i + 1] == '%';
    }
    SetResult(w, lane, plan, conversions);
  }
  return true;
}

bool CallAssert(const Inst* ip, Warp* w, const CallPlan& plan) {
  const uint32_t lane = __builtin_ctz(w->mask);
  w->current = ip;
  std::string message, file, function;
  if (!ReadString(ip, w, lane, Argument(w, lane, plan, 0), &message) ||
      !ReadString(ip, w, lane, Argument(w, lane, plan, 1), &file) ||
      !ReadString(ip, w, lane, Argument(w, lane, plan, 3), &function)) {
    return false;
  }
  const uint64_t line = Argument(w, lane, plan, 2);
  const Block& block = *w->block;
  char place[160];
  std::snprintf(place, sizeof place, ": block: [%u,%u,%u], thread: [%u,%u,%u] Assertion `",
                block.id.x, block.id.y, block.id.z, w->tid[0][lane], w->tid[1][lane],
                w->tid[2][lane]);
  if (block.state->launch->print) {
    block.state->launch->print(file + ":" + std::to_string(line) + ": " + function + place +
                               message + "` failed.\n");
  }
  RaiseFault(ip, w, static_cast<int>(lane), CUDA_ERROR_ASSERT,
             "assertion `" + message + "` failed at " + file + ":" + std::to_string(line));
  return false;
}

// CUDA leaves open which lane's value counts where they differ: the last one's does here.
bool CallSetCondition(const Inst* ip, Warp* w, const CallPlan& plan) {
  w->current = ip;
  ConditionSetter* const conditions = w->block->state->launch->objects.conditions;
  for (uint32_t m = w->mask; m != 0; m &= m - 1) {
    const uint32_t lane = __builtin_ctz(m);
    const uint64_t handle = Argument(w, lane, plan, 0);
    const uint32_t value = static_cast<uint32_t>(Argument(w, lane, plan, 1));
    if (conditions != nullptr && conditions->Set(handle, value)) continue;
    char text[96];
    std::snprintf(text, sizeof text,
                  "cudaGraphSetConditional of 0x%" PRIx64
                  ", which is no conditional handle of a graph",
                  handle);
    RaiseFault(ip, w, static_cast<int>(lane), CUDA_ERROR_ILLEGAL_ADDRESS, text, handle);
    return false;
  }
  return true;
}

}  // namespace softgpu::exec
