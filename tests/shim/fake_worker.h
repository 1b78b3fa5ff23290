// A worker in the test's own process: a thread that runs the real session of a worker, with its
// real handlers of calls, behind a real session file and over a pretended device.
//
// The device does everything at once and in order; with Hold() it is busy. What a test wants to see
// is recorded, and failures are the driver's (FailNext) or those of a worker that hangs (Stop).
// Thread safety: any thread; one object per process.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "daemon/worker/backed_addresses.h"
#include "daemon/worker/jobs.h"
#include "daemon/worker/lanes.h"
#include "daemon/worker/session.h"
#include "ipc/session_file.h"
#include "ipc/tables.h"
#include "tests/shim/fake_driver.h"
#include "tests/shim/fake_graphs.h"
#include "tests/shim/fake_memory.h"
#include "tests/shim/fake_modules.h"
#include "tests/shim/fake_streams.h"
#include "tests/shim/watched_receiver.h"

namespace shim_test {

class FakeWorker {
 public:
  // Makes the session, connects the process's client to it and starts the thread. Once per process.
  static FakeWorker& Start(uint32_t worker_pid = 0, const ipc::Tables& tables = ipc::OwnTables(),
                           uint32_t devices = 2);
  FakeWorker(const FakeWorker&) = delete;

  // Keeps the device busy until Release().
  void Hold() { FakeStreams::Process().Hold(); }
  void Release() { FakeStreams::Process().Release(); }
  // The worker takes no message any more.
  void Stop() { watch_->Hang(); }

  std::vector<SeenLaunch> launches() { return FakeModules::Process().launches(); }
  std::map<std::string, int> counts() { return watch_->counts(); }  // messages, by call
  std::vector<FakeGraphs::Edge> TakeEdges() { return FakeGraphs::Process().TakeEdges(); }
  ipc::SessionPage* page() { return page_; }

 private:
  class FailOnPoison : public worker::PoisonSink {
   public:
    void OnPoisoned(uint64_t session_id, CUresult code, const std::string& text) override;
  };

  FakeWorker(int session_fd, int pinned_fd, uint32_t devices);
  void Run();

  const ipc::DriverTable driver_ = FakeDriver();
  FailOnPoison poison_;
  worker::JobBooks jobs_;
  worker::BackedAddresses backed_;
  worker::Environment environment_;
  worker::LaneTable lanes_{&environment_};
  std::unique_ptr<worker::Session> session_;
  WatchedReceiver* watch_ = nullptr;  // the session's
  ipc::SessionPage* page_ = nullptr;  // as the client has it
};

}  // namespace shim_test
