// When the device began and ended what messages gave it, for `laneway trace JOB --calls`.
//
// The work of a message lies between two events of the driver on the work's stream. Both tell the
// device's time. A third event, the base, leads from there to the host's clock: the base was
// recorded between two readings of that clock. How far the readings lie apart is the error of all
// times that count from the same base. Durations have no such error.
//
// Nothing here waits for the device but for kBaseNs, and only where a base is taken. Thread safety:
// one session's thread. REQUIRES of all but Clear(): the context of the stream's device is current.
#pragma once

#include "ipc/calls/vendor.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <vector>

#include "ipc/call_trace.h"
#include "ipc/driver_table.h"

namespace worker {

class DeviceTimes {
 public:
  explicit DeviceTimes(const ipc::DriverTable& driver) : driver_(driver) {}
  DeviceTimes(const DeviceTimes&) = delete;
  ~DeviceTimes() { Clear(); }

  // Work may follow on the stream; without a base, nothing is told of it. In place of an earlier
  // Begin() without End().
  void Begin(CUstream stream, int device);
  // It is submitted, as far as it is there. False: nothing is told of it. `amount`: of the event.
  bool End(uint16_t op, uint32_t slot, uint64_t amount);
  // No work followed.
  void Forget();

  // Tells of the pieces that the device has finished, in the order of their submission.
  void Collect(const std::function<void(const ipc::TraceEvent&)>& tell);
  // Nothing is told of what is open.
  void Drop();
  bool open() const { return !pieces_.empty(); }
  // The driver's objects go.
  void Clear();

 private:
  static constexpr size_t kOpenMax = 1024;
  static constexpr int64_t kBaseNs = 50'000'000;         // until a base must be there
  static constexpr int64_t kBaseLifeNs = 1'000'000'000;  // the driver's times are floats

  struct Base {
    CUstream stream = nullptr;
    CUevent event = nullptr;
    int64_t host_ns = 0;   // 0: there is none
    int64_t tried_ns = 0;  // when one was last asked for
  };
  struct Begun {
    CUevent event = nullptr;  // null: none
    CUstream stream = nullptr;
    int device = 0;
  };
  struct Piece {
    CUevent begin = nullptr;
    CUevent end = nullptr;
    int device = 0;
    ipc::TraceEvent told;
  };

  CUevent Take();  // null: the driver can't
  void Give(CUevent event) { spare_.push_back(event); }
  void Give(const Piece& piece);
  bool FindBase(int device);
  bool MakeBase(Base* base);
  bool TimeOf(const Base& base, CUevent event, int64_t* ns) const;

  const ipc::DriverTable& driver_;
  Begun begun_;
  std::deque<Piece> pieces_;
  std::vector<CUevent> spare_;
  std::map<int, Base> bases_;  // by device
};

}  // namespace worker
