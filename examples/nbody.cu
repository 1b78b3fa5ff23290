// All-pairs gravity: positions pass through shared memory tile by tile.   nbody [bodies] [steps]
#include <cmath>

#include "common.h"

constexpr int kThreads = 128;
constexpr float kSoftening = 1e-3f;
constexpr float kStep = 1e-3f;

__global__ void Accelerate(const float4* positions, float4* velocities, int count) {
  __shared__ float4 tile[kThreads];
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const float4 mine = i < count ? positions[i] : make_float4(0, 0, 0, 0);
  float3 acceleration = make_float3(0, 0, 0);
  for (int start = 0; start < count; start += kThreads) {
    const int other = start + threadIdx.x;
    tile[threadIdx.x] = other < count ? positions[other] : make_float4(0, 0, 0, 0);
    __syncthreads();
    for (int k = 0; k < kThreads; ++k) {
      const float4 body = tile[k];  // w is the mass; padding has none
      const float3 r = make_float3(body.x - mine.x, body.y - mine.y, body.z - mine.z);
      const float inverse = rsqrtf(r.x * r.x + r.y * r.y + r.z * r.z + kSoftening);
      const float pull = body.w * inverse * inverse * inverse;
      acceleration.x += r.x * pull;
      acceleration.y += r.y * pull;
      acceleration.z += r.z * pull;
    }
    __syncthreads();
  }
  if (i >= count) return;
  float4 velocity = velocities[i];
  velocity.x += acceleration.x * kStep;
  velocity.y += acceleration.y * kStep;
  velocity.z += acceleration.z * kStep;
  velocities[i] = velocity;
}

__global__ void Move(float4* positions, const float4* velocities, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  positions[i].x += velocities[i].x * kStep;
  positions[i].y += velocities[i].y * kStep;
  positions[i].z += velocities[i].z * kStep;
}

// Total momentum starts at zero and, but for rounding, stays there.
static double Momentum(const std::vector<float4>& positions,
                       const std::vector<float4>& velocities) {
  double x = 0, y = 0, z = 0;
  for (size_t i = 0; i < positions.size(); ++i) {
    x += static_cast<double>(positions[i].w) * velocities[i].x;
    y += static_cast<double>(positions[i].w) * velocities[i].y;
    z += static_cast<double>(positions[i].w) * velocities[i].z;
  }
  return std::sqrt(x * x + y * y + z * z);
}

int main(int argc, char** argv) {
  const int count = IntArgument(argc, argv, 1, 1000);
  const int steps = IntArgument(argc, argv, 2, 10);
  if (count <= 0 || steps <= 0) {
    std::fprintf(stderr, "usage: nbody [bodies > 0] [steps > 0]\n");
    return 2;
  }
  Random random(3);
  std::vector<float4> positions(count), velocities(count, make_float4(0, 0, 0, 0));
  for (float4& body : positions) {
    body = make_float4(random.Uniform() - 0.5f, random.Uniform() - 0.5f, random.Uniform() - 0.5f,
                       (0.5f + random.Uniform()) / static_cast<float>(count));
  }
  DeviceBuffer<float4> device_positions(positions), device_velocities(velocities);

  const int blocks = (count + kThreads - 1) / kThreads;
  const double begin_ms = NowMs();
  for (int step = 0; step < steps; ++step) {
    Accelerate<<<blocks, kThreads>>>(device_positions.get(), device_velocities.get(), count);
    Move<<<blocks, kThreads>>>(device_positions.get(), device_velocities.get(), count);
  }
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaDeviceSynchronize());
  std::printf("time: %d steps %.3f ms\n", steps, NowMs() - begin_ms);

  positions = device_positions.Get();
  velocities = device_velocities.Get();
  const bool still = Momentum(positions, velocities) < 1e-5;
  std::printf("nbody: %d bodies, %d steps, momentum %s\n", count, steps, still ? "ok" : "WRONG");
  std::printf("nbody: body 0 at %.9g %.9g %.9g, fingerprint %016llx\n", positions[0].x,
              positions[0].y, positions[0].z,
              static_cast<unsigned long long>(Fingerprint(positions)));
  return still ? 0 : 1;
}
