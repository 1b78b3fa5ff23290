#include "daemon/worker/work_ops.h"

#include <gtest/gtest.h>

#include <set>

#include "ipc/calls.h"

namespace worker {
namespace {

bool IsWork(std::string_view name) {
  const std::optional<ipc::Op> op = ipc::OpNamed(name);
  EXPECT_TRUE(op.has_value()) << name;
  return op.has_value() && IsWorkUntrusted(static_cast<uint16_t>(*op));
}

TEST(WorkOpsTest, WhatTheDeviceDoesIsWork) {
  for (const char* name : {"cuMemsetD8Async", "cuMemcpyDtoDAsync_v2", "cuStreamWaitValue32_v2",
                           "cuStreamWriteValue64_v2", "cublasSgemm_v2", "cublasSdot_v2",
                           "cublasSrotg_v2", "cublasLtMatmul"}) {
    EXPECT_TRUE(IsWork(name)) << name;
  }
  EXPECT_TRUE(IsWorkUntrusted(static_cast<uint16_t>(ipc::Op::Launch)));
  EXPECT_TRUE(IsWorkUntrusted(static_cast<uint16_t>(ipc::Op::CopyStagedIn)));
  EXPECT_TRUE(IsWorkUntrusted(static_cast<uint16_t>(ipc::Op::HostCall)));
  EXPECT_TRUE(IsWorkUntrusted(static_cast<uint16_t>(ipc::Op::LaneKeep)));
}

constexpr ipc::Library kAll[] = {ipc::Library::kDriver, ipc::Library::kCublas,
                                 ipc::Library::kCublasLt, ipc::Library::kLaneway};

// A new row without a device address is decided here, by who adds it: what makes the device touch
// memory goes to the exceptions in work_ops.cc, the rest into this list.
constexpr std::string_view kTouchNoMemory[] = {
    "cuDeviceGetHostAtomicCapabilities",
    "cuDeviceGetExecAffinitySupport",
    "cuStreamWaitEvent",
    "cuStreamWaitEvent_ptsz",
    "cuEventCreate",
    "cuEventDestroy_v2",
    "cuEventElapsedTime_v2",
    "cuFuncSetAttribute",
    "cuFuncSetCacheConfig",
    "cuFuncSetSharedMemConfig",
    "cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags",
    "cuOccupancyAvailableDynamicSMemPerBlock",
    "cuDeviceGetP2PAtomicCapabilities",
    "cublasCreate_v2",
    "cublasDestroy_v2",
    "cublasGetVersion_v2",
    "cublasGetProperty",
    "cublasSetStream_v2",
    "cublasGetAtomicsMode",
    "cublasSetAtomicsMode",
    "cublasGetMathMode",
    "cublasSetMathMode",
    "cublasGetSmCountTarget",
    "cublasSetSmCountTarget",
    "cublasGetEmulationStrategy",
    "cublasSetEmulationStrategy",
    "cublasGetEmulationSpecialValuesSupport",
    "cublasSetEmulationSpecialValuesSupport",
    "cublasGetFixedPointEmulationMantissaControl",
    "cublasSetFixedPointEmulationMantissaControl",
    "cublasGetFixedPointEmulationMaxMantissaBitCount",
    "cublasSetFixedPointEmulationMaxMantissaBitCount",
    "cublasGetFixedPointEmulationMantissaBitOffset",
    "cublasSetFixedPointEmulationMantissaBitOffset",
    "cublasLtCreate",
    "cublasLtDestroy",
    "cublasLtGetProperty",
    "cublasLtMatrixLayoutCreate",
    "cublasLtMatrixLayoutDestroy",
    "cublasLtMatrixLayoutSetAttribute",
    "cublasLtMatrixLayoutGetAttribute",
    "cublasLtMatmulDescCreate",
    "cublasLtMatmulDescDestroy",
    "cublasLtMatmulDescGetAttribute",
    "cublasLtMatrixTransformDescCreate",
    "cublasLtMatrixTransformDescDestroy",
    "cublasLtMatrixTransformDescSetAttribute",
    "cublasLtMatrixTransformDescGetAttribute",
    "cublasLtMatmulPreferenceCreate",
    "cublasLtMatmulPreferenceDestroy",
    "cublasLtMatmulPreferenceSetAttribute",
    "cublasLtMatmulPreferenceGetAttribute",
    "cublasLtMatmulAlgoGetHeuristic",
    "cublasLtMatmulAlgoGetIds",
    "cublasLtMatmulAlgoInit",
    "cublasLtMatmulAlgoCheck",
    "cublasLtMatmulAlgoCapGetAttribute",
    "cublasLtMatmulAlgoConfigSetAttribute",
    "cublasLtMatmulAlgoConfigGetAttribute",
    "GetDeviceInfo",
    "ContextReset",
    "MemInfo",
    "PinnedAlloc",
    "HasModule",
    "ModuleBytes",
    "LoadModule",
    "UnloadModule",
    "GetFunction",
    "GetGlobal",
    "FunctionNames",
    "StreamCreate",
    "StreamDestroy",
    "StreamMark",
    "EventRecord",
    "EventWake",
    "ArenaMap",
    "ArenaCreate",
    "ArenaMove",
    "ShareRange",
    "MapShared",
    "ArrayCreate",
    "ArrayDestroy",
    "MipmapCreate",
    "MipmapLevel",
    "MipmapDestroy",
    "TextureOfArray",
    "TextureOfMipmap",
    "TextureDestroy",
    "SurfaceOfArray",
    "SurfaceDestroy",
    "cuArrayGetMemoryRequirements",
    "cuMipmappedArrayGetMemoryRequirements",
    "LaneReserve",
    "StreamsJoin",
    "Boundary",
    "LinkImages",
    "ImageBytes",
    "GraphBegin",
    "GraphKernel",
    "GraphEmpty",
    "GraphEdges",
    "GraphChild",
    "GraphSeal",
    "GraphSetKernel",
    "GraphEnd",
    "GraphCapture",
    "GraphCaptured",
    "GraphCondition",
    "GraphConditional",
    "GraphInside",
    "OrderLaunches",
    "OrderRenamedLaunches",
    "ForgetOrders",
    "GrowHeap",
    "Ping",
};

TEST(WorkOpsTest, EveryRowFollowsTheRuleOrIsListed) {
  std::set<std::string_view> listed(std::begin(kTouchNoMemory), std::end(kTouchNoMemory));
  EXPECT_EQ(listed.size(), std::size(kTouchNoMemory)) << "a name is listed twice";
  std::set<std::string_view> excepted;
  for (const WorkException& exception : WorkExceptions()) {
    EXPECT_TRUE(excepted.insert(exception.name).second) << exception.name;
    EXPECT_FALSE(exception.reason.empty()) << exception.name;
  }
  for (const ipc::Library library : kAll) {
    for (const ipc::Row& row : ipc::RowsOf(library)) {
      if (!row.remote) continue;
      const bool is_listed = listed.erase(row.name) != 0;
      const bool is_excepted = excepted.erase(row.name) != 0;
      EXPECT_EQ(is_listed, !NamesDeviceMemory(row) && !is_excepted) << row.name;
    }
  }
  for (const std::string_view name : listed) ADD_FAILURE() << name << " is no row";
  for (const std::string_view name : excepted) ADD_FAILURE() << name << " is no row";
}

// An exception that says what the rule says is none.
TEST(WorkOpsTest, ExceptionsContradictTheRule) {
  for (const WorkException& exception : WorkExceptions()) {
    for (const ipc::Library library : kAll) {
      const std::span<const ipc::Row> rows = ipc::RowsOf(library);
      for (size_t i = 0; i < rows.size(); ++i) {
        if (rows[i].name != exception.name) continue;
        EXPECT_NE(NamesDeviceMemory(rows[i]), exception.is_work) << exception.name;
        EXPECT_EQ(IsWorkUntrusted(static_cast<uint16_t>(ipc::OpAt(library, i))), exception.is_work);
      }
    }
  }
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
