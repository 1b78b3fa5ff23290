#include "daemon/worker/work_ops.h"

#include <gtest/gtest.h>

#include "ipc/calls.h"

namespace worker {
namespace {

bool IsWork(std::string_view name) {
  const std::optional<ipc::Op> op = ipc::OpNamed(name);
  EXPECT_TRUE(op.has_value()) << name;
  return op.has_value() && IsWorkUntrusted(static_cast<uint16_t>(*op));
}

TEST(WorkOpsTest, WhatTheDeviceDoesIsWork) {
  for (const char* name : {"cuMemsetD8Async", "cuMemcpyDtoDAsync_v2", "cublasSgemm_v2",
                           "cublasSdot_v2", "cublasLtMatmul"}) {
    EXPECT_TRUE(IsWork(name)) << name;
  }
  EXPECT_TRUE(IsWorkUntrusted(static_cast<uint16_t>(ipc::Op::Launch)));
  EXPECT_TRUE(IsWorkUntrusted(static_cast<uint16_t>(ipc::Op::CopyStagedIn)));
  EXPECT_TRUE(IsWorkUntrusted(static_cast<uint16_t>(ipc::Op::HostCall)));
}

TEST(WorkOpsTest, WhatNamesAndAsksPassesAlways) {
  for (const char* name : {"cublasCreate_v2", "cublasSetStream_v2", "cublasLtMatmulDescCreate",
                           "cuStreamWaitEvent", "cuMemcpyHtoD_v2"}) {
    EXPECT_FALSE(IsWork(name)) << name;
  }
  for (const ipc::Op op : {ipc::Op::Ping, ipc::Op::StreamCreate, ipc::Op::LoadModule,
                           ipc::Op::Boundary, ipc::Op::StreamMark, ipc::Op::EventRecord}) {
    EXPECT_FALSE(IsWorkUntrusted(static_cast<uint16_t>(op)));
  }
  EXPECT_FALSE(IsWorkUntrusted(0xffff));
}

TEST(WorkOpsTest, OnlyCallsOfCublasAreALibrarys) {
  for (const char* name : {"cublasSgemm_v2", "cublasSetStream_v2", "cublasLtMatmul"}) {
    EXPECT_TRUE(IsLibraryCallUntrusted(static_cast<uint16_t>(*ipc::OpNamed(name)))) << name;
  }
  EXPECT_FALSE(
      IsLibraryCallUntrusted(static_cast<uint16_t>(*ipc::OpNamed("cuMemcpyDtoDAsync_v2"))));
  EXPECT_FALSE(IsLibraryCallUntrusted(static_cast<uint16_t>(ipc::Op::EventRecord)));
  EXPECT_FALSE(IsLibraryCallUntrusted(0xffff));
}

}  // namespace
}  // namespace worker
