#include "softgpu/driver/memory_operation.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <string>
#include <thread>
#include <utility>

#include "softgpu/driver/access_operation.h"
#include "softgpu/driver/context.h"
#include "softgpu/driver/driver.h"
#include "softgpu/driver/error_log.h"
#include "softgpu/exec/spin.h"

namespace softgpu {
namespace {

constexpr unsigned kConditionMask = 3;  // what is left of the flags without FLUSH
constexpr std::chrono::microseconds kSleepMin{10}, kSleepMax{2000};
// So many waits may look at their words every kSleepMax. More of them look more rarely: a thousand
// streams that wait would otherwise take all cores.
constexpr int kPromptWaits = 8;

bool IsWait(CUstreamBatchMemOpType type) {
  return type == CU_STREAM_MEM_OP_WAIT_VALUE_32 || type == CU_STREAM_MEM_OP_WAIT_VALUE_64;
}

bool IsWrite(CUstreamBatchMemOpType type) {
  return type == CU_STREAM_MEM_OP_WRITE_VALUE_32 || type == CU_STREAM_MEM_OP_WRITE_VALUE_64;
}

bool Is64(CUstreamBatchMemOpType type) {
  return type == CU_STREAM_MEM_OP_WAIT_VALUE_64 || type == CU_STREAM_MEM_OP_WRITE_VALUE_64;
}

template <class T>
bool Satisfied(uint64_t address, T value, unsigned flags) {
  using Signed = std::make_signed_t<T>;
  const T seen = std::atomic_ref<T>(*reinterpret_cast<T*>(address)).load();
  switch (flags & kConditionMask) {
    case CU_STREAM_WAIT_VALUE_GEQ:
      return static_cast<Signed>(seen - value) >= 0;  // cyclic, as the manual says
    case CU_STREAM_WAIT_VALUE_EQ:
      return seen == value;
    case CU_STREAM_WAIT_VALUE_AND:
      return (seen & value) != 0;
    default:
      return static_cast<T>(~(seen | value)) != 0;  // NOR
  }
}

class MemoryOperation final : public Operation {
 public:
  MemoryOperation(std::shared_ptr<Context> context, std::vector<CUstreamBatchMemOpParams> items,
                  Place place)
      : Operation(place), context_(std::move(context)), items_(std::move(items)) {}

  void SetStream(CUstream stream) override { stream_ = stream; }

  CUresult Run() override {
    for (const CUstreamBatchMemOpParams& item : items_) {
      missing_.reset();
      if (IsWait(item.operation)) {
        Wait(item.waitValue);
      } else if (IsWrite(item.operation)) {
        missing_ = exec::FindPageFault([&item] { Write(item.writeValue); });
      }
      if (missing_) return ReportAccess(Describe(item), *missing_, stream_);
    }
    return CUDA_SUCCESS;
  }

 private:
  using WaitValue = CUstreamBatchMemOpParams::CUstreamMemOpWaitValueParams_st;
  using WriteValue = CUstreamBatchMemOpParams::CUstreamMemOpWriteValueParams_st;

  // True as well when the word is gone.
  bool Reached(const WaitValue& wait) {
    if (context_->Fault() != CUDA_SUCCESS) return true;  // nobody will write any more
    bool reached = false;
    missing_ = exec::FindPageFault([&wait, &reached] {
      reached = Is64(wait.operation) ? Satisfied<uint64_t>(wait.address, wait.value64, wait.flags)
                                     : Satisfied<uint32_t>(wait.address, wait.value, wait.flags);
    });
    return reached || missing_.has_value();
  }

  // Sleeps in proportion to how long the wait has lasted: prompt when it is short, cheap when it is
  // long.
  void Wait(const WaitValue& wait) {
    using Clock = std::chrono::steady_clock;
    const Clock::time_point begin = Clock::now();
    if (SpinUntil([&] { return Reached(wait); })) return;
    static std::atomic<int> sleeping{0};
    sleeping.fetch_add(1, std::memory_order_relaxed);
    while (!Reached(wait)) {
      const Clock::duration waited = (Clock::now() - begin) / 16;
      const int crowd = sleeping.load(std::memory_order_relaxed) / kPromptWaits;
      // A writer may be another process, which rings no bell.
      std::this_thread::sleep_for(
          std::clamp<Clock::duration>(waited, kSleepMin, kSleepMax * std::max(1, crowd)));
    }
    sleeping.fetch_sub(1, std::memory_order_relaxed);
  }

  static void Write(const WriteValue& write) {
    if (Is64(write.operation)) {
      std::atomic_ref<uint64_t>(*reinterpret_cast<uint64_t*>(write.address)).store(write.value64);
    } else {
      std::atomic_ref<uint32_t>(*reinterpret_cast<uint32_t*>(write.address)).store(write.value);
    }
  }

  static std::string Describe(const CUstreamBatchMemOpParams& item) {
    const bool wait = IsWait(item.operation);
    const CUdeviceptr address = wait ? item.waitValue.address : item.writeValue.address;
    char text[64];
    std::snprintf(text, sizeof text, "a stream %s 0x%llx",
                  wait ? "waits for the word at" : "writes the word at", address);
    return text;
  }

  const std::shared_ptr<Context> context_;
  const std::vector<CUstreamBatchMemOpParams> items_;
  std::optional<uint64_t> missing_;  // where the last access found no memory
  CUstream stream_ = nullptr;
};

CUresult Check(const CUstreamBatchMemOpParams& item) {
  const CUstreamBatchMemOpType type = item.operation;
  if (type == CU_STREAM_MEM_OP_BARRIER || type == CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES) {
    return CUDA_SUCCESS;  // memory is coherent
  }
  if (!IsWait(type) && !IsWrite(type))
    return Fail(CUDA_ERROR_INVALID_VALUE, "an operation is unknown");
  const uint64_t bytes = Is64(type) ? 8 : 4;
  const uint64_t address = IsWait(type) ? item.waitValue.address : item.writeValue.address;
  if (address % bytes != 0 || !Driver::Get().memory_map().Covers(address, bytes)) {
    return Fail(CUDA_ERROR_INVALID_VALUE, "the address is misaligned or not allocated memory");
  }
  return CUDA_SUCCESS;
}

}  // namespace

CUresult MakeMemoryOperation(std::shared_ptr<Context> context,
                             std::vector<CUstreamBatchMemOpParams> items,
                             std::unique_ptr<Operation>* operation) {
  Operation::Place place = Operation::Place::kSubmitter;
  for (const CUstreamBatchMemOpParams& item : items) {
    const CUresult result = Check(item);
    if (result != CUDA_SUCCESS) return result;
    if (IsWait(item.operation)) place = Operation::Place::kStreamThread;
  }
  *operation = std::make_unique<MemoryOperation>(std::move(context), std::move(items), place);
  return CUDA_SUCCESS;
}

}  // namespace softgpu
