// A driver table whose calls are written down, with physical memory that keeps its bytes, for tests
// of what the worker asks the driver and the keeper to do. Thread safety: one test at a time.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "daemon/worker/session.h"

namespace worker {

struct Recording {
  struct Mapping {
    CUmemGenericAllocationHandle handle = 0;
    uint64_t bytes = 0;
    bool open = false;  // cuMemSetAccess was called
  };
  std::vector<std::string> calls;        // "wait s2 e1", "record e1 s1", ...
  std::set<CUdeviceptr> mapped;          // starts of live mappings
  std::set<CUevent> unfinished_events;   // cuEventQuery says NOT_READY
  double device_ms = 0;                  // the device's clock
  std::map<CUevent, double> reached_ms;  // recorded events
  std::set<CUstream> busy_streams;       // cuStreamQuery says NOT_READY
  int next_handle = 1;

  // The keeper: what exists, by id, and how often this worker has it.
  std::map<uint64_t, ExtentRecord> extents;
  std::map<uint64_t, int> imports;
  std::set<uint64_t> given_up;  // gone with the last import
  uint64_t capacity_bytes = 0;
  uint64_t used_bytes = 0;
  bool clear = false;  // new extents must be zeroed
  std::shared_ptr<LaneClaims> claims = std::make_shared<LaneClaims>();
  std::vector<uint64_t> claimed;  // lanes, as the keeper heard

  // The device: an extent's id is its handle, too.
  std::map<CUdeviceptr, Mapping> mappings;
  std::map<CUmemGenericAllocationHandle, std::vector<uint8_t>> contents;
  uint64_t cleared_bytes = 0;
  // Copies and fills are done only once they were asked after, by an event recorded after them or
  // by their stream, and then not at the first time. Streams are one queue.
  bool asynchronous = false;
  struct Operation {
    std::function<void()> work;
    CUevent reached = nullptr;  // of EventRecord
    bool asked = false;         // after this event
  };
  std::vector<Operation> queued;

  // The byte behind an address. REQUIRES: it is mapped and open.
  uint8_t& At(CUdeviceptr address);
  // Does it now, or queues it.
  void Submit(std::function<void()> work);
  // Does what is queued, as far as `event`, or all of it. False: not before the next question.
  bool Finish(CUevent event);
  // Gives an extent a life before this worker's.
  void AddExtent(const ExtentRecord& record);
};

// Empties and returns the one recording.
Recording& FreshRecording();
// Its driver and extents; contexts, poison, lanes, jobs and swap are not set.
Environment RecordingEnvironment();

}  // namespace worker
