// Arrays and textures of a session: whose memory they are, when they go, and what a client cannot
// reach by them.
#include "daemon/worker/call_handlers/array_handler.h"

#include <set>

#include "tests/daemon/worker/session_fixture.h"

namespace worker {
namespace {

using ipc::limits::MiB;

constexpr CUDA_ARRAY3D_DESCRIPTOR kOneMiB = {1024, 256, 0, CU_AD_FORMAT_FLOAT, 1, 0};

class ArrayHandlerTest : public SessionTest {
 protected:
  void Equip() override {
    arrays.clear();
    textures = 0;
    driver_.cuArray3DCreate_v2 = [](CUarray* array, const CUDA_ARRAY3D_DESCRIPTOR*) {
      static uintptr_t last = 0x1000;
      *array = reinterpret_cast<CUarray>(++last);
      arrays.insert(*array);
      return CUDA_SUCCESS;
    };
    driver_.cuArrayDestroy = [](CUarray array) {
      arrays.erase(array);
      return CUDA_SUCCESS;
    };
    driver_.cuTexObjectCreate = [](CUtexObject* texture, const CUDA_RESOURCE_DESC*,
                                   const CUDA_TEXTURE_DESC*, const CUDA_RESOURCE_VIEW_DESC*) {
      *texture = static_cast<CUtexObject>(++textures);
      return CUDA_SUCCESS;
    };
    driver_.cuTexObjectDestroy = [](CUtexObject) {
      --textures;
      return CUDA_SUCCESS;
    };
    driver_.cuMemcpy3DAsync_v2 = [](const CUDA_MEMCPY3D*, CUstream) {
      ++copies;
      return CUDA_SUCCESS;
    };
  }
  void SetUp() override {
    SessionTest::SetUp();
    session_->handlers().UseDevice(1);
  }
  ArrayHandler& handler() { return session_->handlers().arrays(); }
  CUarray Make() {
    CUarray array = nullptr;
    EXPECT_EQ(handler().ArrayCreate(&array, &kOneMiB), CUDA_SUCCESS);
    return array;
  }
  CUtexObject TextureOf(CUarray array) {
    CUtexObject texture = 0;
    EXPECT_EQ(handler().TextureOfArray(&texture, array, &description_, &view_), CUDA_SUCCESS);
    return texture;
  }
  uint64_t Counted() { return session_->Snapshot().device_bytes; }
  bool IsRecoverable() { return (file_->page()->obstacles.load() & ipc::kArrays) == 0; }

  static inline std::set<CUarray> arrays;
  static inline int textures = 0, copies = 0;
  const CUDA_TEXTURE_DESC description_ = {};
  const ipc::TextureView view_{};
};

TEST_F(ArrayHandlerTest, SmallArraysShareTheUnitsInWhichTheyCount) {
  EXPECT_TRUE(IsRecoverable());
  CUarray made[3];
  for (CUarray& array : made) array = Make();
  EXPECT_EQ(Counted(), 4 * MiB);
  EXPECT_FALSE(IsRecoverable());
  EXPECT_EQ(handler().ArrayDestroy(made[0]), CUDA_SUCCESS);
  EXPECT_EQ(Counted(), 2 * MiB);
  EXPECT_EQ(handler().ArrayDestroy(made[0]), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(handler().ArrayDestroy(made[1]), CUDA_SUCCESS);
  EXPECT_EQ(handler().ArrayDestroy(made[2]), CUDA_SUCCESS);
  EXPECT_EQ(Counted(), 0u);
  EXPECT_TRUE(arrays.empty());
  EXPECT_TRUE(IsRecoverable());
}

TEST_F(ArrayHandlerTest, TheJobsLimitHolds) {
  jobs_.SetLimit(0, 3 * MiB);
  Make();
  Make();
  CUarray more = nullptr;
  EXPECT_EQ(handler().ArrayCreate(&more, &kOneMiB), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(arrays.size(), 2u);
  EXPECT_EQ(Counted(), 2 * MiB);
}

TEST_F(ArrayHandlerTest, WhatTheDriverRefusesCountsNothing) {
  driver_.cuArray3DCreate_v2 = [](CUarray*, const CUDA_ARRAY3D_DESCRIPTOR*) {
    return CUDA_ERROR_INVALID_VALUE;
  };
  CUarray array = nullptr;
  EXPECT_EQ(handler().ArrayCreate(&array, &kOneMiB), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(Counted(), 0u);
}

// Nothing says how much memory these take, or the program would map it.
TEST_F(ArrayHandlerTest, OnlyArraysOfKnownSizeAreMade) {
  CUDA_ARRAY3D_DESCRIPTOR descriptor = kOneMiB;
  CUarray array = nullptr;
  descriptor.Flags = CUDA_ARRAY3D_SPARSE;
  EXPECT_EQ(handler().ArrayCreate(&array, &descriptor), CUDA_ERROR_NOT_SUPPORTED);
  descriptor.Flags = CUDA_ARRAY3D_DEFERRED_MAPPING;
  EXPECT_EQ(handler().ArrayCreate(&array, &descriptor), CUDA_ERROR_NOT_SUPPORTED);
  descriptor = kOneMiB;
  descriptor.Format = CU_AD_FORMAT_BC1_UNORM;
  EXPECT_EQ(handler().ArrayCreate(&array, &descriptor), CUDA_ERROR_NOT_SUPPORTED);
  descriptor = kOneMiB;
  descriptor.Height = ~size_t{0};
  EXPECT_EQ(handler().ArrayCreate(&array, &descriptor), CUDA_ERROR_INVALID_VALUE);
  EXPECT_TRUE(arrays.empty());
}

TEST_F(ArrayHandlerTest, AnArrayStaysWhileATextureHasIt) {
  const CUarray array = Make();
  const CUtexObject first = TextureOf(array), second = TextureOf(array);
  EXPECT_EQ(handler().ArrayDestroy(array), CUDA_SUCCESS);
  EXPECT_EQ(handler().TextureDestroy(first), CUDA_SUCCESS);
  EXPECT_EQ(handler().TextureDestroy(first), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(arrays.size(), 1u);
  EXPECT_EQ(Counted(), 2 * MiB);
  EXPECT_EQ(handler().TextureDestroy(second), CUDA_SUCCESS);
  EXPECT_TRUE(arrays.empty());
  EXPECT_EQ(textures, 0);
  EXPECT_TRUE(IsRecoverable());
}

TEST_F(ArrayHandlerTest, AllGoWithTheSession) {
  const CUarray ended = Make();
  TextureOf(ended);
  TextureOf(Make());
  EXPECT_EQ(handler().ArrayDestroy(ended), CUDA_SUCCESS);
  handler().Destroy();
  EXPECT_TRUE(arrays.empty());
  EXPECT_EQ(textures, 0);
  EXPECT_EQ(Counted(), 0u);
}

TEST_F(ArrayHandlerTest, TexturesOfMemoryAreOfTheSessionsOwn) {
  const CUdeviceptr own = ipc::limits::kSlotBase;
  const CUdeviceptr foreign = own + ipc::limits::kSlotBytes;
  ipc::LinearTexels texels = {CU_AD_FORMAT_FLOAT, 1, 4096, 0, 0};
  CUtexObject texture = 0;
  const auto create = [&](CUdeviceptr memory) {
    return handler().TextureOfMemory(&texture, memory, &texels, &description_, &view_);
  };
  EXPECT_EQ(create(own), CUDA_SUCCESS);
  EXPECT_EQ(create(foreign), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(create(foreign - 2048), CUDA_ERROR_INVALID_VALUE);
  // Rows whose reach is short only because it wraps.
  texels = {CU_AD_FORMAT_FLOAT, 1, 1, 65537, uint64_t{1} << 48};
  EXPECT_EQ(create(own), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(textures, 1);
}

TEST_F(ArrayHandlerTest, CopiesStayWithinBothEnds) {
  const CUdeviceptr own = ipc::limits::kSlotBase;
  const CUarray array = Make();
  void* stream = nullptr;
  ASSERT_TRUE(session_->handlers().door().Translate(ipc::HandleKind::kStream,
                                                    ipc::HandleId::kLegacyStream, &stream));
  ipc::ArrayBox box;
  box.size = {4096, 256, 1};
  box.pitch = 4096;
  box.rows = 256;
  const auto copy = [&](CUdeviceptr memory) {
    return handler().CopyArray(array, &box, memory, static_cast<CUstream>(stream), {});
  };
  const auto staged = [&](size_t bytes) {
    return handler().CopyArrayStaged(array, &box, 0, bytes, static_cast<CUstream>(stream), {});
  };
  copies = 0;
  EXPECT_EQ(copy(own), CUDA_SUCCESS);
  EXPECT_EQ(staged(MiB), CUDA_SUCCESS);
  EXPECT_EQ(copies, 2);
  EXPECT_EQ(copy(own + ipc::limits::kSlotBytes), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(staged(MiB - 1), CUDA_ERROR_INVALID_VALUE);
  box.at.y = 1;
  EXPECT_EQ(copy(own), CUDA_ERROR_INVALID_VALUE);
  box.at.y = ~uint64_t{0};
  EXPECT_EQ(copy(own), CUDA_ERROR_INVALID_VALUE);
  box.at = {2, 0, 0};
  box.size.width = 4;
  EXPECT_EQ(copy(own), CUDA_ERROR_INVALID_VALUE) << "inside an element";
  EXPECT_EQ(copies, 2);
}

}  // namespace
}  // namespace worker
