// The holdings of a session without a client, on the recording driver: for tests of parts that use
// a session's memory and streams. Thread safety: none.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "daemon/worker/holdings.h"
#include "daemon/worker/session.h"
#include "ipc/calls/limits.h"
#include "ipc/session_file.h"

namespace worker {

// Of a session that sees so many devices, with its addresses reserved and no memory there. Null,
// and the test has failed: there is no session file. The environment outlives the holdings.
inline std::unique_ptr<Holdings> MakeHoldings(Environment* environment, size_t devices) {
  environment->contexts.assign(devices, reinterpret_cast<CUcontext>(1));
  const absl::StatusOr<int> fd = ipc::SessionFile::Create(1, 0);
  EXPECT_TRUE(fd.ok()) << fd.status();
  if (!fd.ok()) return nullptr;
  absl::StatusOr<ipc::SessionFile> file = ipc::SessionFile::Map(*fd);
  close(*fd);
  EXPECT_TRUE(file.ok()) << file.status();
  if (!file.ok()) return nullptr;
  SessionSetup setup{.session_id = 1, .slot = 0, .file = std::move(*file), .channel = {}};
  setup.pinned_fd = memfd_create("pinned", MFD_CLOEXEC);
  EXPECT_EQ(ftruncate(setup.pinned_fd, static_cast<off_t>(ipc::limits::kPinnedWindowBytes)), 0);
  auto held = std::make_unique<Holdings>(*environment, setup, nullptr);
  std::string error;
  EXPECT_TRUE(held->arena.Reserve(&error)) << error;
  return held;
}

}  // namespace worker
