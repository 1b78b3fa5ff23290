// Launches, fills and copies within the device that follow each other in a chunk (ipc/chunks),
// replayed as one graph for each stream.
//
// The same chunk brings the same steps, but for some of their arguments. The client has sent them
// twice before it repeats the chunk, so the steps of a run on one stream are a graph piece from the
// first repeat on. Its nodes follow each other in the order of the program, or wait only for what
// an order of the client's names (launch_orders.h). Where the order renames parameters, nodes have
// the addresses of scratch memory for them. Then a run costs the driver one launch for each
// of its streams, and the worker reads only the messages that differ from the last time. Events
// end a run, so nothing within it orders one of its streams after another. Whatever a graph cannot
// express, or the driver refuses, is served message by message, as without: so errors are those of
// the single calls. A fill or copy that differs from the last time is served alone from then on,
// and runs end before it. An order is of launches alone, so runs end before one. Nimble (papers,
// section 4.1) records the launches of a whole network in this way. Thread safety: one session's
// thread.
#pragma once

#include "ipc/calls/vendor.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "daemon/worker/device_write.h"
#include "daemon/worker/graph_piece.h"
#include "daemon/worker/kernel_node.h"
#include "daemon/worker/launch_orders.h"
#include "daemon/worker/renamed_arguments.h"
#include "ipc/driver_table.h"

namespace worker {

// The session's calls, as the runs see them.
class LaunchSource {
 public:
  struct Described {
    KernelLaunch launch;  // the arguments lie in the message
    CUstream stream = nullptr;
    std::optional<DeviceWrite> write = std::nullopt;  // in place of a launch
  };

  virtual ~LaunchSource() = default;
  // Decodes what the message of a step asks for, with all the checks of the call. None: the call
  // fails, or a graph can't express it.
  virtual std::optional<Described> DescribeStepUntrusted(std::span<const std::byte> message) = 0;
  // True when the session has all of this memory now.
  virtual bool AreBacked(TouchedSpans* spans) = 0;
  virtual bool HasStream(CUstream stream) = 0;
  // Orders the stream for more work on it. REQUIRES: the session has the stream.
  virtual void UseStream(CUstream stream) = 0;
  // True when work on one of the streams is ordered with work on the other by itself, as CUDA's
  // legacy stream is.
  virtual bool AreOrdered(CUstream stream, CUstream other) = 0;
  // Grows whenever a name in a launch may stand for another object.
  virtual uint64_t names_version() const = 0;
};

class LaunchRuns {
 public:
  // All outlive this object.
  LaunchRuns(const ipc::DriverTable& driver, LaunchSource* source, const LaunchOrders* orders)
      : driver_(driver), source_(*source), orders_(*orders) {}
  LaunchRuns(const LaunchRuns&) = delete;

  struct Replayed {
    size_t bytes = 0;                // of the messages that the graph stands for; 0: none
    uint32_t messages = 0;           // how many they are
    uint32_t launches = 0;           // how many of them are launches
    CUresult result = CUDA_SUCCESS;  // of the graph's launch
  };
  // True when a message of this call may be a step of a run.
  static bool IsStepUntrusted(uint16_t op);
  // `messages`: the rest of a chunk, from a step on, which lies at `place` of the chunk area.
  // `context`: of the device that is current.
  Replayed TryUntrusted(uint32_t place, std::span<const std::byte> messages, CUcontext context);

  // False when TryUntrusted() would certainly replay nothing.
  bool MayReplayUntrusted(uint32_t place, std::span<const std::byte> messages) const;
  // The run at this place is served step by step from now on.
  void GiveUp(uint32_t place);
  // All graphs go. REQUIRES: the device has finished with them.
  void Clear() {
    runs_.clear();
    ordered_.clear();
    alone_.clear();
  }

 private:
  struct StreamPiece {
    CUstream stream = nullptr;
    std::unique_ptr<GraphPiece> piece;
    uint32_t nodes = 0;
  };
  struct Step {
    uint32_t piece = 0;  // in Run::pieces
    uint32_t node = 0;
  };
  struct Run {
    uint64_t order = 0;               // the id of its order; 0: one step after another
    uint32_t failures = 0;            // without a replay of the same graphs in between
    std::vector<std::byte> messages;  // as they were the last time
    std::vector<Step> steps;
    std::vector<RenamedParameter> renames;  // of the order, where they are now
    uint32_t launches = 0;                  // of the steps
    uint64_t names_version = 0;
    std::vector<StreamPiece> pieces;  // none: nothing was built yet
  };

  // The steps of one device at the beginning of `messages`, up to a step that is served alone, or
  // to the first launch of an order.
  std::span<const std::byte> StepsOf(uint32_t place, std::span<const std::byte> messages) const;
  // All of these launches, in this order.
  Replayed TryOrder(uint32_t place, std::span<const std::byte> messages,
                    const LaunchOrders::Order& order, CUcontext context);
  // False of these: no graph is possible, or worth it. `tried`: the bytes of the steps on streams
  // that may be in one run. `order`: null, or an order of all of them, which are on one stream.
  bool Build(std::span<const std::byte> messages, const LaunchOrders::Order* order,
             CUcontext context, Run* run, size_t* tried);
  // False: the order renames, and there is no scratch memory.
  bool PlaceRenames(const LaunchOrders::Order& order, Run* run) const;
  // As the source describes the step of this number, but for what the run renames.
  std::optional<LaunchSource::Described> DescribeUntrusted(std::span<const std::byte> message,
                                                           size_t step, const Run& run,
                                                           RenamedArguments* arguments);
  bool AddSteps(std::span<const std::byte> messages, CUcontext context, size_t streams_max,
                Run* run, size_t* added);
  // Null: the stream may be in no run with the others, or they are `streams_max`.
  StreamPiece* PieceFor(CUstream stream, CUcontext context, size_t streams_max, Run* run);
  void AddNode(const LaunchSource::Described& described, StreamPiece* piece);
  bool Seal(const LaunchOrders::Order* order, Run* run);
  bool Update(uint32_t place, std::span<const std::byte> messages, Run* run);
  bool Launch(Run* run, Replayed* replayed);
  // True when most steps differ from the last time. Setting their nodes would cost more than the
  // graph saves. REQUIRES: as many bytes as the run has.
  static bool DiffersMuch(std::span<const std::byte> messages, const Run& run);

  static constexpr uint32_t kStepsMin = 3;     // a graph; of fewer, it saves nothing
  static constexpr size_t kStreamsMax = 16;    // of a run
  static constexpr uint32_t kFailuresMax = 3;  // then the steps are served one by one
  static constexpr size_t kRunsMax = 4096;

  const ipc::DriverTable& driver_;
  LaunchSource& source_;
  const LaunchOrders& orders_;
  GraphBooks books_;
  struct {
    uint32_t begin = 0, end = 0;
  } singly_;  // places of the steps that were last found to be served one by one
  absl::flat_hash_set<uint32_t> alone_;         // places of fills and copies that differ
  absl::flat_hash_map<uint32_t, Run> runs_;     // by place
  absl::flat_hash_map<uint32_t, Run> ordered_;  // the same, where an order holds
};

}  // namespace worker
