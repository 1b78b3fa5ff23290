// Pieces of graphs: what the driver is asked for, and what a client may not ask for.
#include "daemon/worker/graph_piece.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "ipc/calls/laneway_calls.h"
#include "ipc/driver_table.h"

namespace worker {
namespace {

// A driver that writes down what it is asked.
struct Asked {
  std::vector<std::string> calls;
  CUresult add = CUDA_SUCCESS;
  uintptr_t nodes = 0, bodies = 0;
  CUgraphConditionalHandle handles = 0;
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
CUresult AddEmpty(CUgraphNode* node, CUgraph graph, const CUgraphNode*, size_t) {
  *node = reinterpret_cast<CUgraphNode>(++asked.nodes);
  const uintptr_t body = reinterpret_cast<uintptr_t>(graph);
  return Note(body < 10 ? "empty" : ("empty in " + std::to_string(body)).c_str());
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

// Handles are from 100, and bodies from 10.
CUresult CreateHandle(CUgraphConditionalHandle* handle, CUgraph, CUcontext, unsigned value,
                      unsigned flags) {
  *handle = 100 + asked.handles++;
  asked.calls.push_back("handle " + std::to_string(value) + " " + std::to_string(flags));
  return asked.add;
}
CUresult AddConditional(CUgraphNode* node, CUgraph graph, const CUgraphNode*,
                        const CUgraphEdgeData*, size_t, CUgraphNodeParams* params) {
  static CUgraph bodies[4];
  for (unsigned i = 0; i < params->conditional.size; ++i)
    bodies[i] = reinterpret_cast<CUgraph>(uintptr_t{10} + asked.bodies++);
  params->conditional.phGraph_out = bodies;
  *node = reinterpret_cast<CUgraphNode>(++asked.nodes);
  asked.calls.push_back("ask " + std::to_string(params->conditional.handle) + " in " +
                        std::to_string(reinterpret_cast<uintptr_t>(graph)));
  return CUDA_SUCCESS;
}

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
    driver_.cuGraphConditionalHandleCreate = &CreateHandle;
    driver_.cuGraphAddNode_v2 = &AddConditional;
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

TEST_F(GraphPieceTest, NodesGoIntoTheBodiesOfConditionalNodes) {
  GraphPiece piece(driver_, nullptr, &books_);
  EXPECT_EQ(piece.AddCondition(0, {77, 5, 1}), CUDA_SUCCESS);
  EXPECT_EQ(piece.AddCondition(1, {78, 0, 0}), CUDA_SUCCESS);
  EXPECT_EQ(piece.AddConditional(0, 0, CU_GRAPH_COND_TYPE_IF, 2), CUDA_SUCCESS);
  EXPECT_EQ(piece.GoInside(1, 0, 1), CUDA_SUCCESS);
  EXPECT_EQ(piece.AddConditional(1, 1, CU_GRAPH_COND_TYPE_WHILE, 1), CUDA_SUCCESS);
  EXPECT_EQ(piece.GoInside(2, 1, 0), CUDA_SUCCESS);
  EXPECT_EQ(piece.AddEmpty(2), CUDA_SUCCESS);
  EXPECT_EQ(piece.AddEmpty(3), CUDA_SUCCESS);
  EXPECT_EQ(piece.GoInside(4, ipc::laneway::kGraphOutside, 0), CUDA_SUCCESS);
  EXPECT_EQ(piece.AddEmpty(4), CUDA_SUCCESS);
  EXPECT_EQ(piece.AddEdges(std::array<uint32_t, 4>{0, 4, 2, 3}), CUDA_SUCCESS);
  EXPECT_EQ(piece.AddEdges(std::array<uint32_t, 2>{1, 2}), CUDA_ERROR_INVALID_VALUE)
      << "no edge leads into a body";
  EXPECT_EQ(piece.Seal(), CUDA_SUCCESS);
  EXPECT_EQ(asked.calls,
            (Calls{"create", "handle 5 1", "handle 0 0", "ask 100 in 1", "ask 101 in 11",
                   "empty in 12", "empty in 12", "empty", "1->5", "3->4", "instantiate"}));
  EXPECT_EQ(books_.nodes, 5u + 2u + 3u) << "conditions and bodies are nodes as well";
}

TEST_F(GraphPieceTest, KernelsGetTheDriversHandles) {
  GraphPiece piece(driver_, nullptr, &books_);
  EXPECT_TRUE(piece.conditions().empty());
  EXPECT_EQ(piece.AddCondition(0, {0x7500000000000001, 0, 0}), CUDA_SUCCESS);
  const uint64_t words[] = {3, 0x7500000000000001, 0x7500000000000002, 0x7500000000000001};
  std::vector<std::byte> params(sizeof words - 4);  // the last one is cut
  std::memcpy(params.data(), words, params.size());
  piece.conditions().Translate(&params);
  uint64_t translated[3] = {};
  std::memcpy(translated, params.data(), sizeof translated);
  EXPECT_EQ(translated[0], 3u);
  EXPECT_EQ(translated[1], 100u);
  EXPECT_EQ(translated[2], words[2]) << "of another piece";
  EXPECT_EQ(std::memcmp(params.data() + 24, &words[3], 4), 0);
}

TEST_F(GraphPieceTest, ConditionsThatMakeNoSenseReachNoDriver) {
  GraphPiece piece(driver_, nullptr, &books_);
  EXPECT_EQ(piece.AddCondition(0, {77, 0, 0}), CUDA_SUCCESS);
  EXPECT_EQ(piece.AddConditional(0, 0, CU_GRAPH_COND_TYPE_IF, 1), CUDA_SUCCESS);
  EXPECT_EQ(piece.GoInside(1, 0, 1), CUDA_ERROR_INVALID_VALUE) << "it has one body";
  EXPECT_EQ(piece.GoInside(1, 1, 0), CUDA_ERROR_INVALID_VALUE) << "there is no such node yet";
  EXPECT_EQ(piece.GoInside(2, 0, 0), CUDA_ERROR_INVALID_VALUE) << "another number's turn is";
  EXPECT_EQ(piece.GoInside(1, 0, 0), CUDA_SUCCESS);
  EXPECT_EQ(piece.AddConditional(1, 1, CU_GRAPH_COND_TYPE_IF, 1), CUDA_SUCCESS);
  EXPECT_EQ(piece.Seal(), CUDA_ERROR_INVALID_VALUE) << "there is no condition 1";
  GraphPiece second(driver_, nullptr, &books_);
  EXPECT_EQ(second.AddCondition(0, {77, 0, 0}), CUDA_SUCCESS);
  EXPECT_EQ(second.AddCondition(1, {77, 0, 0}), CUDA_SUCCESS);
  EXPECT_EQ(second.Seal(), CUDA_ERROR_INVALID_VALUE) << "the name is taken";
}

TEST_F(GraphPieceTest, BodiesAreLimitedInNumberAndDepth) {
  GraphPiece wide(driver_, nullptr, &books_);
  EXPECT_EQ(wide.AddCondition(0, {1, 0, 0}), CUDA_SUCCESS);
  EXPECT_EQ(wide.AddConditional(0, 0, CU_GRAPH_COND_TYPE_SWITCH, ipc::limits::kGraphBodiesMax + 1),
            CUDA_SUCCESS);
  EXPECT_EQ(wide.Seal(), CUDA_ERROR_INVALID_VALUE);
  GraphPiece deep(driver_, nullptr, &books_);
  for (unsigned depth = 0; depth <= ipc::limits::kGraphDepthMax; ++depth) {
    EXPECT_EQ(deep.AddCondition(depth, {depth, 0, 0}), CUDA_SUCCESS);
    EXPECT_EQ(deep.AddConditional(depth, depth, CU_GRAPH_COND_TYPE_IF, 1), CUDA_SUCCESS);
    EXPECT_EQ(deep.GoInside(depth + 1, depth, 0), CUDA_SUCCESS);
  }
  EXPECT_EQ(deep.Seal(), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(asked.bodies, uintptr_t{ipc::limits::kGraphDepthMax});
}

}  // namespace
}  // namespace worker
