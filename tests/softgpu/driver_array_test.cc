// Arrays, textures and surfaces: copies, sampling, addressing, stores.
#include <cmath>
#include <cstring>
#include <numeric>

#include "tests/softgpu/driver_test.h"

namespace softgpu::testing {
namespace {

// Thread i samples at (u, v, w) = coordinates[3 i ..] and stores four channels.
std::string Sampler(const std::string& fetch) {
  return R"(
.visible .entry sample(.param .u64 texture, .param .u64 coordinates, .param .u64 out)
{
  .reg .f32 %f<8>;
  .reg .b32 %r<4>;
  .reg .b64 %rd<6>;
  ld.param.u64 %rd1, [texture];
  ld.param.u64 %rd2, [coordinates];
  ld.param.u64 %rd3, [out];
  mov.u32 %r1, %tid.x;
  mad.wide.u32 %rd4, %r1, 12, %rd2;
  mad.wide.u32 %rd5, %r1, 16, %rd3;
  ld.global.f32 %f1, [%rd4];
  ld.global.f32 %f2, [%rd4+4];
  ld.global.f32 %f3, [%rd4+8];
  cvt.rzi.s32.f32 %r2, %f1;
  cvt.rzi.u32.f32 %r3, %f3;
)" + fetch +
         R"(
  st.global.v4.f32 [%rd5], {%f4, %f5, %f6, %f7};
  ret;
}
)";
}

constexpr char k2D[] = "tex.2d.v4.f32.f32 {%f4, %f5, %f6, %f7}, [%rd1, {%f1, %f2}];";

struct Point {
  float u, v, w;
};
struct Value {
  float x, y, z, w;
};

class ArrayTest : public DriverTest {
 protected:
  CUarray Make(size_t width, size_t height, size_t depth, CUarray_format format, unsigned channels,
               unsigned flags = 0) {
    const CUDA_ARRAY3D_DESCRIPTOR descriptor = {width, height, depth, format, channels, flags};
    CUarray array = nullptr;
    EXPECT_OK(cuArray3DCreate(&array, &descriptor));
    return array;
  }

  // The whole array, packed, from the host.
  void Fill(CUarray array, const void* bytes, size_t row_bytes, size_t rows, size_t planes) {
    CUDA_MEMCPY3D copy = {};
    copy.srcMemoryType = CU_MEMORYTYPE_HOST;
    copy.srcHost = bytes;
    copy.srcPitch = row_bytes;
    copy.srcHeight = rows;
    copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
    copy.dstArray = array;
    copy.WidthInBytes = row_bytes;
    copy.Height = rows;
    copy.Depth = planes;
    EXPECT_OK(cuMemcpy3D(&copy));
  }

  static CUDA_RESOURCE_DESC Of(CUarray array) {
    CUDA_RESOURCE_DESC resource = {};
    resource.resType = CU_RESOURCE_TYPE_ARRAY;
    resource.res.array.hArray = array;
    return resource;
  }

  CUtexObject Texture(const CUDA_RESOURCE_DESC& resource, CUaddress_mode mode, bool linear,
                      unsigned flags) {
    CUDA_TEXTURE_DESC description = {};
    std::fill_n(description.addressMode, 3, mode);
    description.filterMode = linear ? CU_TR_FILTER_MODE_LINEAR : CU_TR_FILTER_MODE_POINT;
    description.flags = flags;
    description.borderColor[0] = -1;
    CUtexObject texture = 0;
    EXPECT_OK(cuTexObjectCreate(&texture, &resource, &description, nullptr));
    return texture;
  }

  std::vector<Value> Sample(CUtexObject texture, const std::vector<Point>& points,
                            const std::string& fetch = k2D) {
    CUdeviceptr from = 0, to = 0;
    EXPECT_OK(cuMemAlloc(&from, points.size() * sizeof(Point)));
    EXPECT_OK(cuMemAlloc(&to, points.size() * sizeof(Value)));
    EXPECT_OK(cuMemcpyHtoD(from, points.data(), points.size() * sizeof(Point)));
    void* params[] = {&texture, &from, &to};
    EXPECT_OK(cuLaunchKernel(Kernel(Sampler(fetch), "sample"), 1, 1, 1,
                             static_cast<unsigned>(points.size()), 1, 1, 0, nullptr, params,
                             nullptr));
    std::vector<Value> values(points.size());
    EXPECT_OK(cuMemcpyDtoH(values.data(), to, values.size() * sizeof(Value)));
    EXPECT_OK(cuMemFree(from));
    EXPECT_OK(cuMemFree(to));
    return values;
  }
};

TEST_F(ArrayTest, CopiesReachEveryPart) {
  CUarray array = Make(5, 4, 3, CU_AD_FORMAT_UNSIGNED_INT16, 2);
  std::vector<uint32_t> texels(60), back(4);
  std::iota(texels.begin(), texels.end(), 100);
  Fill(array, texels.data(), 20, 4, 3);
  // Texels (1..2, 2..3) of plane 2.
  CUDA_MEMCPY3D copy = {};
  copy.srcMemoryType = CU_MEMORYTYPE_ARRAY;
  copy.srcArray = array;
  copy.srcXInBytes = 4;
  copy.srcY = copy.srcZ = 2;
  copy.dstMemoryType = CU_MEMORYTYPE_HOST;
  copy.dstHost = back.data();
  copy.dstPitch = copy.WidthInBytes = 8;
  copy.Height = 2;
  copy.Depth = 1;
  ASSERT_OK(cuMemcpy3D(&copy));
  EXPECT_EQ(back, (std::vector<uint32_t>{151, 152, 156, 157}));
  copy.Height = 3;
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuMemcpy3D(&copy));

  CUarray row = Make(8, 0, 0, CU_AD_FORMAT_UNSIGNED_INT32, 1);
  CUdeviceptr linear = 0;
  ASSERT_OK(cuMemAlloc(&linear, 32));
  ASSERT_OK(cuMemcpyHtoA(row, 0, texels.data(), 32));
  ASSERT_OK(cuMemcpyAtoA(row, 0, row, 16, 8));
  ASSERT_OK(cuMemcpyAtoD(linear, row, 0, 32));
  ASSERT_OK(cuMemcpyDtoH(back.data(), linear, 16));
  EXPECT_EQ(back, (std::vector<uint32_t>{104, 105, 102, 103}));
  ASSERT_OK(cuMemcpyDtoA(row, 8, linear, 8));
  ASSERT_OK(cuMemcpyAtoH(back.data(), row, 0, 16));
  EXPECT_EQ(back, (std::vector<uint32_t>{104, 105, 104, 105}));
  EXPECT_OK(cuMemFree(linear));
  EXPECT_OK(cuArrayDestroy(row));
  EXPECT_OK(cuArrayDestroy(array));
  EXPECT_CU(CUDA_ERROR_INVALID_HANDLE, cuArrayDestroy(array));
}

TEST_F(ArrayTest, ArraysTakeAndReturnMemory) {
  size_t before = 0, during = 0, after = 0, total = 0;
  ASSERT_OK(cuMemGetInfo(&before, &total));
  CUarray array = Make(1024, 1024, 0, CU_AD_FORMAT_FLOAT, 4);
  ASSERT_OK(cuMemGetInfo(&during, &total));
  EXPECT_EQ(before - during, size_t{16} << 20);
  CUDA_ARRAY3D_DESCRIPTOR descriptor = {};
  ASSERT_OK(cuArray3DGetDescriptor(&descriptor, array));
  EXPECT_EQ(descriptor.Width, 1024u);
  EXPECT_EQ(descriptor.NumChannels, 4u);
  EXPECT_OK(cuArrayDestroy(array));
  ASSERT_OK(cuMemGetInfo(&after, &total));
  EXPECT_EQ(before, after);
  descriptor.NumChannels = 3;
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuArray3DCreate(&array, &descriptor));
}

TEST_F(ArrayTest, LevelsHalve) {
  const CUDA_ARRAY3D_DESCRIPTOR descriptor = {8, 4, 0, CU_AD_FORMAT_FLOAT, 1, 0};
  CUmipmappedArray levels = nullptr;
  ASSERT_OK(cuMipmappedArrayCreate(&levels, &descriptor, 10));
  CUarray level = nullptr;
  ASSERT_OK(cuMipmappedArrayGetLevel(&level, levels, 3));
  CUDA_ARRAY_DESCRIPTOR last = {};
  ASSERT_OK(cuArrayGetDescriptor(&last, level));
  EXPECT_EQ(last.Width, 1u);
  EXPECT_EQ(last.Height, 1u);
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuMipmappedArrayGetLevel(&level, levels, 4));
  EXPECT_OK(cuMipmappedArrayDestroy(levels));
}

TEST_F(ArrayTest, FiltersAndAddressModes) {
  const float texels[] = {0, 1, 2, 3, 10, 11, 12, 13};
  CUarray array = Make(4, 2, 0, CU_AD_FORMAT_FLOAT, 1);
  Fill(array, texels, 16, 2, 1);
  const CUDA_RESOURCE_DESC resource = Of(array);

  CUtexObject texture = Texture(resource, CU_TR_ADDRESS_MODE_CLAMP, false, 0);
  std::vector<Value> values =
      Sample(texture, {{0.5f, 0.5f, 0}, {2.9f, 1.1f, 0}, {-7, 9, 0}, {99, -1, 0}});
  EXPECT_EQ(values[0].x, 0);
  EXPECT_EQ(values[0].w, 1);
  EXPECT_EQ(values[1].x, 12);
  EXPECT_EQ(values[2].x, 10);
  EXPECT_EQ(values[3].x, 3);
  EXPECT_OK(cuTexObjectDestroy(texture));

  texture = Texture(resource, CU_TR_ADDRESS_MODE_BORDER, true, 0);
  values = Sample(texture, {{1, 1, 0}, {2.25f, 0.5f, 0}, {0, 0.5f, 0}, {-3, 0.5f, 0}});
  EXPECT_FLOAT_EQ(values[0].x, (0 + 1 + 10 + 11) / 4.0f);
  EXPECT_FLOAT_EQ(values[1].x, 1.75f);
  EXPECT_FLOAT_EQ(values[2].x, -0.5f);
  EXPECT_FLOAT_EQ(values[3].x, -1);
  EXPECT_OK(cuTexObjectDestroy(texture));

  texture = Texture(resource, CU_TR_ADDRESS_MODE_WRAP, false, CU_TRSF_NORMALIZED_COORDINATES);
  values = Sample(texture, {{1.3f, 0.2f, 0}, {-0.1f, 0.7f, 0}});
  EXPECT_EQ(values[0].x, 1);
  EXPECT_EQ(values[1].x, 13);
  EXPECT_OK(cuTexObjectDestroy(texture));

  texture = Texture(resource, CU_TR_ADDRESS_MODE_MIRROR, false, CU_TRSF_NORMALIZED_COORDINATES);
  EXPECT_EQ(Sample(texture, {{1.3f, 0.2f, 0}})[0].x, 2);
  CUDA_TEXTURE_DESC description = {};
  EXPECT_OK(cuTexObjectGetTextureDesc(&description, texture));
  EXPECT_EQ(description.addressMode[0], CU_TR_ADDRESS_MODE_MIRROR);
  EXPECT_OK(cuTexObjectDestroy(texture));
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuTexObjectDestroy(texture));
  EXPECT_OK(cuArrayDestroy(array));
}

TEST_F(ArrayTest, IntegersReadAsFractionsOrAsTheyAre) {
  const uint8_t texels[] = {255, 0, 51, 102};
  CUarray array = Make(1, 1, 0, CU_AD_FORMAT_UNSIGNED_INT8, 4);
  Fill(array, texels, 4, 1, 1);
  CUtexObject texture = Texture(Of(array), CU_TR_ADDRESS_MODE_CLAMP, false, 0);
  Value value = Sample(texture, {{0, 0, 0}})[0];
  EXPECT_FLOAT_EQ(value.x, 1);
  EXPECT_FLOAT_EQ(value.z, 0.2f);
  EXPECT_OK(cuTexObjectDestroy(texture));
  texture = Texture(Of(array), CU_TR_ADDRESS_MODE_CLAMP, false, CU_TRSF_READ_AS_INTEGER);
  value = Sample(texture, {{0, 0, 0}},
                 ".reg .b32 %q<4>; tex.2d.v4.u32.f32 {%q0, %q1, %q2, %q3}, [%rd1, {%f1, %f2}];"
                 "cvt.rn.f32.u32 %f4, %q0; cvt.rn.f32.u32 %f5, %q1; cvt.rn.f32.u32 %f6, %q2;"
                 "cvt.rn.f32.u32 %f7, %q3;")[0];
  EXPECT_EQ(value.x, 255);
  EXPECT_EQ(value.w, 102);
  EXPECT_OK(cuTexObjectDestroy(texture));
  EXPECT_OK(cuArrayDestroy(array));
}

// From below left, against the clock, where rows go down.
TEST_F(ArrayTest, GathersAComponentOfFourTexels) {
  std::vector<float> texels(3 * 3 * 2);
  for (size_t i = 0; i < 9; ++i) {
    texels[2 * i] = static_cast<float>(i);
    texels[2 * i + 1] = static_cast<float>(100 + i);
  }
  CUarray array = Make(3, 3, 0, CU_AD_FORMAT_FLOAT, 2, CUDA_ARRAY3D_TEXTURE_GATHER);
  Fill(array, texels.data(), 24, 3, 1);
  CUtexObject texture = Texture(Of(array), CU_TR_ADDRESS_MODE_CLAMP, false, 0);
  const std::vector<Value> red =
      Sample(texture, {{1, 1, 0}, {1.75f, 2.25f, 0}, {0, 0, 0}},
             "tld4.r.2d.v4.f32.f32 {%f4, %f5, %f6, %f7}, [%rd1, {%f1, %f2}];");
  const float expected[3][4] = {{3, 4, 1, 0}, {7, 8, 5, 4}, {0, 0, 0, 0}};
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(red[i].x, expected[i][0]) << i;
    EXPECT_EQ(red[i].y, expected[i][1]) << i;
    EXPECT_EQ(red[i].z, expected[i][2]) << i;
    EXPECT_EQ(red[i].w, expected[i][3]) << i;
  }
  const Value green = Sample(texture, {{2, 1, 0}},
                             "tld4.g.2d.v4.f32.f32 {%f4, %f5, %f6, %f7}, [%rd1, {%f1, %f2}];")[0];
  EXPECT_EQ(green.x, 104);
  EXPECT_EQ(green.y, 105);
  EXPECT_EQ(green.z, 102);
  EXPECT_EQ(green.w, 101);
  EXPECT_EQ(Sample(texture, {{2, 1, 0}},
                   "tld4.a.2d.v4.f32.f32 {%f4, %f5, %f6, %f7}, [%rd1, {%f1, %f2}];")[0]
                .x,
            1);  // a component that the texels have not
  EXPECT_OK(cuTexObjectDestroy(texture));
  EXPECT_OK(cuArrayDestroy(array));
}

TEST_F(ArrayTest, LinearMemoryLayersVolumesAndCubes) {
  std::vector<float> texels(24);
  std::iota(texels.begin(), texels.end(), 0);
  CUdeviceptr linear = 0;
  ASSERT_OK(cuMemAlloc(&linear, 96));
  ASSERT_OK(cuMemcpyHtoD(linear, texels.data(), 96));
  CUDA_RESOURCE_DESC resource = {};
  resource.resType = CU_RESOURCE_TYPE_LINEAR;
  resource.res.linear = {linear, CU_AD_FORMAT_FLOAT, 2, 96};
  CUtexObject texture = Texture(resource, CU_TR_ADDRESS_MODE_CLAMP, false, 0);
  const std::vector<Value> pairs = Sample(texture, {{3, 0, 0}, {12, 0, 0}},
                                          "tex.1d.v4.f32.s32 {%f4, %f5, %f6, %f7}, [%rd1, {%r2}];");
  EXPECT_EQ(pairs[0].x, 6);
  EXPECT_EQ(pairs[0].y, 7);
  EXPECT_EQ(pairs[1].x, 0);  // beyond the end
  EXPECT_OK(cuTexObjectDestroy(texture));
  EXPECT_OK(cuMemFree(linear));

  CUarray layers = Make(2, 2, 6, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_LAYERED);
  Fill(layers, texels.data(), 8, 2, 6);
  texture = Texture(Of(layers), CU_TR_ADDRESS_MODE_CLAMP, true, 0);
  EXPECT_EQ(Sample(texture, {{1, 1, 3}},
                   "tex.a2d.v4.f32.f32 {%f4, %f5, %f6, %f7}, [%rd1, {%r3, %f1, %f2, %f2}];")[0]
                .x,
            13.5f);
  EXPECT_OK(cuTexObjectDestroy(texture));
  EXPECT_OK(cuArrayDestroy(layers));

  CUarray volume = Make(2, 2, 6, CU_AD_FORMAT_FLOAT, 1);
  Fill(volume, texels.data(), 8, 2, 6);
  texture = Texture(Of(volume), CU_TR_ADDRESS_MODE_CLAMP, true, 0);
  EXPECT_EQ(Sample(texture, {{1, 1, 3}},
                   "tex.3d.v4.f32.f32 {%f4, %f5, %f6, %f7}, [%rd1, {%f1, %f2, %f3, %f3}];")[0]
                .x,
            11.5f);
  EXPECT_OK(cuTexObjectDestroy(texture));
  EXPECT_OK(cuArrayDestroy(volume));

  CUarray cube = Make(2, 2, 6, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_CUBEMAP);
  Fill(cube, texels.data(), 8, 2, 6);
  texture = Texture(Of(cube), CU_TR_ADDRESS_MODE_CLAMP, false, CU_TRSF_NORMALIZED_COORDINATES);
  // To +x looking up and towards +z; to -z looking down.
  const std::vector<Value> faces =
      Sample(texture, {{1, 0.5f, 0.5f}, {0.5f, -0.5f, -1}},
             "tex.cube.v4.f32.f32 {%f4, %f5, %f6, %f7}, [%rd1, {%f1, %f2, %f3, %f3}];");
  EXPECT_EQ(faces[0].x, 0);
  EXPECT_EQ(faces[1].x, 22);
  EXPECT_OK(cuTexObjectDestroy(texture));
  EXPECT_OK(cuArrayDestroy(cube));
}

// Moves the texel at (x, y) one to the right, and what is not there is 0.
constexpr char kShift[] = R"(
.visible .entry shift(.param .u64 from, .param .u64 to)
{
  .reg .b32 %r<8>;
  .reg .b64 %rd<3>;
  ld.param.u64 %rd1, [from];
  ld.param.u64 %rd2, [to];
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, %tid.y;
  shl.b32 %r3, %r1, 2;
  sub.s32 %r4, %r3, 4;
  suld.b.2d.b32.zero %r5, [%rd1, {%r4, %r2}];
  suq.width.b32 %r6, [%rd1];
  add.u32 %r5, %r5, %r6;
  sust.b.2d.b32.trap [%rd2, {%r3, %r2}], %r5;
  ret;
}
)";

TEST_F(ArrayTest, SurfacesLoadAndStore) {
  CUarray arrays[2];
  CUsurfObject surfaces[2];
  for (int k = 0; k < 2; ++k) {
    arrays[k] = Make(4, 2, 0, CU_AD_FORMAT_UNSIGNED_INT32, 1, CUDA_ARRAY3D_SURFACE_LDST);
    const CUDA_RESOURCE_DESC resource = Of(arrays[k]);
    ASSERT_OK(cuSurfObjectCreate(&surfaces[k], &resource));
  }
  const uint32_t texels[] = {1, 2, 3, 4, 5, 6, 7, 8};
  Fill(arrays[0], texels, 16, 2, 1);
  void* params[] = {&surfaces[0], &surfaces[1]};
  ASSERT_OK(cuLaunchKernel(Kernel(kShift, "shift"), 1, 1, 1, 4, 2, 1, 0, nullptr, params, nullptr));
  std::vector<uint32_t> back(8);
  CUDA_MEMCPY2D copy = {};
  copy.srcMemoryType = CU_MEMORYTYPE_ARRAY;
  copy.srcArray = arrays[1];
  copy.dstMemoryType = CU_MEMORYTYPE_HOST;
  copy.dstHost = back.data();
  copy.dstPitch = copy.WidthInBytes = 16;
  copy.Height = 2;
  ASSERT_OK(cuMemcpy2D(&copy));
  EXPECT_EQ(back, (std::vector<uint32_t>{4, 5, 6, 7, 4, 9, 10, 11}));
  for (int k = 0; k < 2; ++k) {
    EXPECT_OK(cuSurfObjectDestroy(surfaces[k]));
    EXPECT_OK(cuArrayDestroy(arrays[k]));
  }
}

}  // namespace
}  // namespace softgpu::testing
