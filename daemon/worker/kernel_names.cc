#include "daemon/worker/kernel_names.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>
#include <vector>

#include "ipc/work_records.h"

namespace worker {

void KernelNames::Begin(const ipc::TraceWriter& writer) {
  writer_ = writer;
  numbers_.clear();
  last_ = 0;
}

uint32_t KernelNames::NumberOf(CUfunction function) {
  if (images_.unloads() != std::exchange(unloads_, images_.unloads())) numbers_.clear();
  if (const auto known = numbers_.find(function); known != numbers_.end()) return known->second;
  const char* name = nullptr;
  if (function == nullptr || driver_.cuFuncGetName(&name, function) != CUDA_SUCCESS) return 0;
  const ipc::KernelHead head{.number = last_ + 1};
  const size_t letters = std::min<size_t>(std::strlen(name), ipc::kSentNameBytesMax);
  std::vector<std::byte> bytes(sizeof head + letters);
  std::memcpy(bytes.data(), &head, sizeof head);
  std::memcpy(bytes.data() + sizeof head, name, letters);
  ipc::TraceEvent event;
  event.kind = ipc::TraceKind::kKernel;
  if (!writer_.AddRecord(event, bytes)) return 0;
  return numbers_[function] = ++last_;
}

}  // namespace worker
