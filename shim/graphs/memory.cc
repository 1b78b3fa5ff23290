#include "shim/graphs/memory.h"

#include <map>

#include "base/find.h"
#include "base/mutex.h"
#include "shim/device_memory.h"
#include "shim/lock_order.h"

namespace shim::graphs {

// All memory of graphs, by address.
class GraphMemory::Table {
 public:
  static Table& Process() {
    static Table* const table = new Table;
    return *table;
  }
  void Add(GraphMemory* memory) EXCLUDES(mutex_) {
    const base::MutexLock lock(&mutex_);
    by_address_[memory->address()] = memory;
  }
  Holder Remove(const GraphMemory& memory) EXCLUDES(mutex_) {
    const base::MutexLock lock(&mutex_);
    if (memory.holder_ != Holder::kNone) by_address_.erase(memory.address());
    return memory.holder_;
  }
  // False: none begins there.
  bool Set(uint64_t address, Holder holder) EXCLUDES(mutex_) {
    const base::MutexLock lock(&mutex_);
    GraphMemory* const memory = base::FindOr(by_address_, address, nullptr);
    if (memory == nullptr) return false;
    memory->holder_ = holder;
    if (holder == Holder::kNone) by_address_.erase(address);
    return true;
  }
  bool Has(uint64_t address, Holder holder) EXCLUDES(mutex_) {
    const base::MutexLock lock(&mutex_);
    const GraphMemory* const memory = base::FindOr(by_address_, address, nullptr);
    return memory != nullptr && memory->holder_ == holder;
  }

 private:
  base::Mutex mutex_ ACQUIRED_AFTER(lock_order::kKeeping);
  std::map<uint64_t, GraphMemory*> by_address_ GUARDED_BY(mutex_);
};

CUresult GraphMemory::Create(const Context& context, uint64_t context_value,
                             const CUDA_MEM_ALLOC_NODE_PARAMS& params,
                             std::shared_ptr<GraphMemory>* made) {
  Allocation allocation;
  const CUresult result =
      DeviceMemory::Process().Allocate(context, params.bytesize, {}, &allocation);
  if (result != CUDA_SUCCESS) return result;
  allocation.kind = Allocation::Kind::kGraph;
  allocation.context = context_value;
  State::Process().allocations.Add(allocation);
  *made = std::make_shared<GraphMemory>(params, allocation);
  Table::Process().Add(made->get());
  return CUDA_SUCCESS;
}

GraphMemory::GraphMemory(const CUDA_MEM_ALLOC_NODE_PARAMS& params, const Allocation& allocation)
    : params_(params), allocation_(allocation) {
  params_.dptr = allocation.base;
  params_.accessDescs = nullptr;
  params_.accessDescCount = 0;
}

GraphMemory::~GraphMemory() {
  const Holder holder = Table::Process().Remove(*this);
  Allocation left;
  if (holder == Holder::kNone ||
      !State::Process().allocations.Remove(address(), Allocation::Kind::kGraph, &left)) {
    return;
  }
  if (holder == Holder::kGraph) {
    DeviceMemory::Process().Free(allocation_, arena::kAnyStream);
    return;
  }
  left.kind = Allocation::Kind::kDevice;
  State::Process().allocations.Add(left);
}

void GraphMemory::Allocate() { Table::Process().Set(address(), Holder::kProgram); }
bool GraphMemory::Free(uint64_t address) { return Table::Process().Set(address, Holder::kGraph); }
bool GraphMemory::IsFree(uint64_t address) { return Table::Process().Has(address, Holder::kGraph); }
void GraphMemory::Forget(uint64_t address) { Table::Process().Set(address, Holder::kNone); }

}  // namespace shim::graphs
