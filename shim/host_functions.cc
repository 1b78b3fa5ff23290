#include "shim/host_functions.h"

#include <algorithm>
#include <vector>

#include "shim/client.h"
#include "shim/send.h"
#include "shim/service_thread.h"
#include "shim/streams.h"

namespace shim {

HostFunctions& HostFunctions::Process() {
  static HostFunctions* const functions = new HostFunctions;
  return *functions;
}

CUresult HostFunctions::Launch(const Stream& stream, CUhostFn function, void* data) {
  Entry entry;
  entry.function = function;
  entry.data = data;
  return Submit(stream, entry);
}

CUresult HostFunctions::AddCallback(const Stream& stream, CUstream program,
                                    CUstreamCallback callback, void* data) {
  Entry entry;
  entry.callback = callback;
  entry.program = program;
  entry.data = data;
  return Submit(stream, entry);
}

CUresult HostFunctions::Submit(const Stream& stream, Entry entry) {
  if (!StartThread()) return CUDA_ERROR_OUT_OF_MEMORY;
  CUstream program = reinterpret_cast<CUstream>(stream.value);
  ipc::Mark mark;
  entry.slot = stream.slot;
  Slot& slot = Streams::Process().SlotOf(stream);
  const CUresult result = PostWith<ipc::Op::HostCall>(
      stream.wire,
      [&] {
        mark = Streams::Process().NextMark(stream, true);
        // It says that the stream has arrived; the function is still to run, so the stream is not
        // covered by it.
        slot.marked_at.fetch_sub(1, std::memory_order_relaxed);
        entry.ticket = ++slot.ticket;
      },
      program, entry.ticket, mark);
  if (result != CUDA_SUCCESS) return result;
  entry.sequence = mark.sequence;
  {
    const base::MutexLock lock(&mutex_);
    entries_.push_back(entry);
  }
  work_.NotifyOne();
  return CUDA_SUCCESS;
}

bool HostFunctions::StartThread() {
  const base::MutexLock lock(&mutex_);
  if (running_) return true;
  const auto run = [](void* self) -> void* {
    static_cast<HostFunctions*>(self)->Serve();
    return nullptr;
  };
  running_ = StartServiceThread(run, this);
  return running_;
}

// The first entry whose stream has arrived; those of one slot in their order.
bool HostFunctions::TakeReady(Entry* entry) {
  std::vector<uint32_t> blocked;
  for (std::deque<Entry>::iterator it = entries_.begin(); it != entries_.end(); ++it) {
    if (std::find(blocked.begin(), blocked.end(), it->slot) != blocked.end()) continue;
    if (!Client::Process().Completed(it->slot, it->sequence)) {
      blocked.push_back(it->slot);
      continue;
    }
    *entry = *it;
    entries_.erase(it);
    return true;
  }
  return false;
}

void HostFunctions::FailAll(CUresult loss) {
  std::deque<Entry> failed;
  {
    const base::MutexLock lock(&mutex_);
    failed.swap(entries_);
  }
  for (const Entry& entry : failed) {
    if (entry.callback != nullptr) entry.callback(entry.program, loss, entry.data);
  }
}

void HostFunctions::Serve() {
  Client& client = Client::Process();
  for (;;) {
    Entry entry;
    bool found = false;
    const uint32_t ticket = client.DoorbellTicket();
    {
      const base::MutexLock lock(&mutex_);
      while (entries_.empty()) work_.Wait(&mutex_);
      found = TakeReady(&entry);
    }
    if (!found) {
      if (const CUresult loss = client.Ready(); loss != CUDA_SUCCESS) FailAll(loss);
      client.SleepOnDoorbell(ticket);
      continue;
    }
    if (entry.function != nullptr) entry.function(entry.data);
    if (entry.callback != nullptr) entry.callback(entry.program, CUDA_SUCCESS, entry.data);
    client.Acknowledge(entry.slot, entry.ticket);
  }
}

}  // namespace shim
