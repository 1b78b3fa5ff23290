// The device in virtual time, which LANEWAY_SOFTGPU's `timing=FILE` asks for (timing_table.h).
//
// Operations enter where a program submits them, and run as they do without virtual time: no result
// depends on it, and it depends on no clock. Events tell virtual time, and the program's own waits
// are what moves it on. One process has one virtual device.
//
// Thread safety: every function may be called from any thread. Threads that submit at once enter
// in the order of their calls here.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "scheduler/streams/timeline.h"
#include "softgpu/driver/timing_table.h"

namespace softgpu {

class Operation;
class Stream;

class VirtualDevice {
 public:
  using Moment = scheduler::streams::Timeline::Moment;
  using Streams = std::vector<std::shared_ptr<Stream>>;

  // Reads the table, once in a process and before Get is called. False, and `error` filled, when
  // that is not possible.
  static bool Open(const std::string& path, std::string* error);
  static VirtualDevice* Get();  // null: events tell real time

  const TimingTable& table() const { return table_; }

  // Enters an operation that `stream` gets now. The operation begins behind the work that `stream`
  // and the streams `others` have.
  void Enter(const Stream& stream, const Streams& others, Operation* operation);
  // When all work that the streams have so far is done.
  Moment EndOf(const Streams& streams);
  // The program has seen that the moment is reached. Returns when that was, in ns.
  double Observe(const Moment& moment);
  void ObserveEnd(const Streams& streams) { Observe(EndOf(streams)); }
  void Forget(const Stream& stream);  // no more work comes

  explicit VirtualDevice(TimingTable table);

 private:
  std::vector<Moment> EndsOf(const Streams& streams) REQUIRES(mutex_);

  const TimingTable table_;
  base::Mutex mutex_;
  scheduler::streams::Timeline timeline_ GUARDED_BY(mutex_);
  std::map<uint64_t, Moment> ends_ GUARDED_BY(mutex_);  // by Stream::id: of its work so far
};

}  // namespace softgpu
