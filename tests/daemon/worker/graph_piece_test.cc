// Pieces of graphs: what the driver is asked for, and what a client may not ask for.
#include "daemon/worker/graph_piece.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "ipc/driver_table.h"

namespace worker {
namespace {

// A driver that writes down what it is asked.
struct Asked {
  std::vector<std::string> calls;
  CUresult add = CUDA_SUCCESS;
  uintptr_t nodes = 0;
};
Asked asked;

CUresult Note(const char* call) {
  asked.calls.emplace_back(call);
  return CUDA_SUCCESS;
}

CUresult Create(CUgraph* graph, unsigned) {
  *graph = reinterpret_cast<CUgraph>(uintptr_t{1});
  return Note("create");
}
CUresult Destroy(CUgraph) { return Note("destroy"); }
CUresult AddKernel(CUgraphNode* node, CUgraph, const CUgraphNode*, size_t,
                   const CUDA_KERNEL_NODE_PARAMS*) {
  if (asked.add != CUDA_SUCCESS) return asked.add;
  *node = reinterpret_cast<CUgraphNode>(++asked.nodes);
  return Note("kernel");
}
CUresult AddEmpty(CUgraphNode* node, CUgraph, const CUgraphNode*, size_t) {
  *node = reinterpret_cast<CUgraphNode>(++asked.nodes);
  return Note("empty");
}
CUresult AddEdges(CUgraph, const CUgraphNode* from, const CUgraphNode* to, const CUgraphEdgeData*,
                  size_t count) {
  for (size_t i = 0; i < count; ++i) {
    asked.calls.push_back(std::to_string(reinterpret_cast<uintptr_t>(from[i])) + "->" +
                          std::to_string(reinterpret_cast<uintptr_t>(to[i])));
  }
  return CUDA_SUCCESS;
}
CUresult Instantiate(CUgraphExec* exec, CUgraph, unsigned long long) {
  *exec = reinterpret_cast<CUgraphExec>(uintptr_t{2});
  return Note("instantiate");
}
CUresult SetKernel(CUgraphExec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS*) {
  asked.calls.push_back("set " + std::to_string(reinterpret_cast<uintptr_t>(node)));
  return CUDA_SUCCESS;
}
CUresult Launch(CUgraphExec, CUstream) { return Note("launch"); }
CUresult DestroyExec(CUgraphExec) { return Note("destroy exec"); }

CUresult AddChild(CUgraphNode* node, CUgraph, const CUgraphNode*, size_t, CUgraph child) {
  *node = reinterpret_cast<CUgraphNode>(++asked.nodes);
  return Note(child == nullptr ? "nothing" : "child");
}
CUresult CreateStream(CUstream* stream, unsigned flags) {
  *stream = reinterpret_cast<CUstream>(uintptr_t{3});
  return Note(flags == CU_STREAM_NON_BLOCKING ? "stream" : "blocking stream");
}
CUresult BeginCapture(CUstream, CUgraph, const CUgraphNode*, const CUgraphEdgeData*, size_t,
                      CUstreamCaptureMode mode) {
  return Note(mode == CU_STREAM_CAPTURE_MODE_RELAXED ? "begin" : "begin for all");
}
CUresult EndCapture(CUstream, CUgraph*) { return Note("end"); }
CUresult DestroyStream(CUstream) { return Note("destroy stream"); }

class GraphPieceTest : public ::testing::Test {
 protected:
  GraphPieceTest() : driver_(ipc::NullDriver()) {
    asked = Asked();
    driver_.cuGraphCreate = &Create;
    driver_.cuGraphDestroy = &Destroy;
    driver_.cuGraphAddKernelNode_v2 = &AddKernel;
    driver_.cuGraphAddEmptyNode = &AddEmpty;
    driver_.cuGraphAddDependencies_v2 = &AddEdges;
    driver_.cuGraphInstantiateWithFlags = &Instantiate;
    driver_.cuGraphExecKernelNodeSetParams_v2 = &SetKernel;
    driver_.cuGraphLaunch = &Launch;
    driver_.cuGraphExecDestroy = &DestroyExec;
    driver_.cuGraphAddChildGraphNode = &AddChild;
    driver_.cuStreamCreate = &CreateStream;
    driver_.cuStreamBeginCaptureToGraph = &BeginCapture;
    driver_.cuStreamEndCapture = &EndCapture;
    driver_.cuStreamDestroy_v2 = &DestroyStream;
  }
  using Calls = std::vector<std::string>;
  ipc::DriverTable driver_;
  GraphBooks books_;
  const CUDA_KERNEL_NODE_PARAMS kernel_{};
};

TEST_F(GraphPieceTest, IsBuiltSealedChangedAndLaunched) {
  {
    GraphPiece piece(driver_, nullptr, &books_);
    EXPECT_EQ(piece.AddKernel(0, kernel_, false), CUDA_SUCCESS);
    EXPECT_EQ(piece.AddEmpty(1), CUDA_SUCCESS);
    const std::array<uint32_t, 2> edge = {0, 1};
    EXPECT_EQ(piece.AddEdges(edge), CUDA_SUCCESS);
    EXPECT_EQ(piece.Launch(nullptr), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(piece.Seal(), CUDA_SUCCESS);
    EXPECT_EQ(piece.SetKernel(0, kernel_), CUDA_SUCCESS);
    EXPECT_EQ(piece.Launch(nullptr), CUDA_SUCCESS);
  }
  EXPECT_EQ(asked.calls, (Calls{"create", "kernel", "empty", "1->2", "instantiate", "set 1",
                                "launch", "destroy exec", "destroy"}));
}

TEST_F(GraphPieceTest, NumbersThatMakeNoSenseReachNoDriver) {
  GraphPiece piece(driver_, nullptr, &books_);
  EXPECT_EQ(piece.AddKernel(1, kernel_, false), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(piece.AddKernel(0, kernel_, false), CUDA_SUCCESS);
  EXPECT_EQ(piece.AddKernel(0, kernel_, false), CUDA_ERROR_INVALID_VALUE);
  for (const std::array<uint32_t, 2>& edge :
       {std::array<uint32_t, 2>{0, 1}, {0, 0}, {1, 0}, {7, 9}, {0, ~0u}}) {
    EXPECT_EQ(piece.AddEdges(edge), CUDA_ERROR_INVALID_VALUE);
  }
  const std::array<uint32_t, 1> half = {0};
  EXPECT_EQ(piece.AddEdges(half), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(piece.SetKernel(0, kernel_), CUDA_ERROR_INVALID_VALUE);  // not sealed yet
  EXPECT_EQ(piece.Seal(), CUDA_SUCCESS);
  EXPECT_EQ(piece.Seal(), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(piece.AddEmpty(1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(piece.SetKernel(1, kernel_), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(asked.calls, (Calls{"create", "kernel", "instantiate"}));
}

TEST_F(GraphPieceTest, WhatALibraryDidIsANodeOfAnother) {
  GraphPiece library(driver_, nullptr, &books_), piece(driver_, nullptr, &books_);
  asked.calls.clear();
  EXPECT_EQ(library.BeginCapture(), CUDA_SUCCESS);
  EXPECT_NE(library.capture(), nullptr);
  EXPECT_EQ(piece.AddChild(0, library), CUDA_ERROR_INVALID_VALUE);  // not ended yet
  EXPECT_EQ(library.EndCapture(), CUDA_SUCCESS);
  EXPECT_EQ(library.EndCapture(), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(library.AddEmpty(0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(library.Launch(nullptr), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(piece.AddChild(1, library), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(piece.AddChild(0, library), CUDA_SUCCESS);
  EXPECT_EQ(asked.calls, (Calls{"stream", "begin", "end", "destroy stream", "child"}));
}

TEST_F(GraphPieceTest, ACaptureThatIsNotEndedEndsWithIt) {
  {
    GraphPiece library(driver_, nullptr, &books_);
    EXPECT_EQ(library.BeginCapture(), CUDA_SUCCESS);
  }
  EXPECT_EQ(asked.calls, (Calls{"create", "stream", "begin", "end", "destroy stream", "destroy"}));
}

TEST_F(GraphPieceTest, AFailureIsToldWhenItIsSealed) {
  GraphPiece piece(driver_, nullptr, &books_);
  asked.add = CUDA_ERROR_OUT_OF_MEMORY;
  EXPECT_EQ(piece.AddKernel(0, kernel_, true), CUDA_SUCCESS);
  EXPECT_EQ(piece.AddEmpty(1), CUDA_SUCCESS);
  const std::array<uint32_t, 2> edge = {0, 1};
  EXPECT_EQ(piece.AddEdges(edge), CUDA_SUCCESS);
  EXPECT_EQ(piece.Seal(), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(piece.Launch(nullptr), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(GraphPieceTest, TheNodesOfASessionAreLimitedAndTheSealSaysSo) {
  books_.nodes = ipc::limits::kGraphNodesMax - 2;
  {
    GraphPiece piece(driver_, nullptr, &books_);
    for (unsigned node = 0; node < 4; ++node) EXPECT_EQ(piece.AddEmpty(node), CUDA_SUCCESS);
    EXPECT_EQ(std::count(asked.calls.begin(), asked.calls.end(), "empty"), 2);
    EXPECT_EQ(piece.Seal(), CUDA_ERROR_OUT_OF_MEMORY);
  }
  EXPECT_EQ(books_.nodes, ipc::limits::kGraphNodesMax - 2) << "its end gives them back";
  GraphPiece piece(driver_, nullptr, &books_);
  EXPECT_EQ(piece.AddEmpty(0), CUDA_SUCCESS);
  EXPECT_EQ(piece.Seal(), CUDA_SUCCESS);
}

TEST_F(GraphPieceTest, TheEdgesOfASessionAreLimitedAndTheSealSaysSo) {
  books_.edges = ipc::limits::kGraphEdgesMax - 1;
  GraphPiece piece(driver_, nullptr, &books_);
  for (unsigned node = 0; node < 3; ++node) EXPECT_EQ(piece.AddEmpty(node), CUDA_SUCCESS);
  EXPECT_EQ(piece.AddEdges(std::array<uint32_t, 2>{0, 1}), CUDA_SUCCESS);
  EXPECT_EQ(piece.AddEdges(std::array<uint32_t, 2>{1, 2}), CUDA_SUCCESS);
  EXPECT_EQ(piece.Seal(), CUDA_ERROR_OUT_OF_MEMORY);
}

}  // namespace
}  // namespace worker
