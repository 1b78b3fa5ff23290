// Ordinary CUDA that nvcc compiles to PTX for nvcc_test.cc, which has a host reference for each
// kernel.
#include <cooperative_groups.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cassert>
#include <cstdio>

namespace cg = cooperative_groups;

__device__ __noinline__ int Fibonacci(int n) {
  return n < 2 ? n : Fibonacci(n - 1) + Fibonacci(n - 2);
}
__global__ void k_recursion(int* out) { out[threadIdx.x] = Fibonacci(threadIdx.x % 12); }
__device__ __noinline__ int Endless(int n) {
  volatile int keep[4];  // so that it cannot become a loop
  keep[n & 3] = n;
  return n == 0x7fffffff ? 0 : Endless(n + 1) + keep[(n + 1) & 3];
}
__global__ void k_overflow(int* out) { out[threadIdx.x] = Endless(threadIdx.x); }

typedef int (*Unary)(int);
__device__ __noinline__ int Triple(int x) { return x * 3; }
__device__ __noinline__ int PlusSeven(int x) { return x + 7; }
__device__ Unary table[2] = {Triple, PlusSeven};
__global__ void k_indirect(int* io) { io[threadIdx.x] = table[threadIdx.x & 1](io[threadIdx.x]); }

__global__ void k_switch(int* io, int x) {
  switch (io[threadIdx.x]) {
    case 0:
      x += 3;
      break;
    case 1:
      x *= 7;
      break;
    case 2:
      x ^= 5;
      break;
    case 3:
      x = x / 3;
      break;
    case 4:
      x = x % 9;
      break;
    case 5:
      x = __popc(x);
      break;
    case 6:
      x = __clz(x);
      break;
    case 7:
      x = __brev(x);
      break;
    default:
      break;
  }
  io[threadIdx.x] = x;
}

__global__ void k_reduce(const float* in, float* out, int n) {
  __shared__ float partial[32];
  float sum = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x)
    sum += in[i];
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_down_sync(~0u, sum, offset);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x >= 32) return;
  sum = threadIdx.x < blockDim.x / 32 ? partial[threadIdx.x] : 0;
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(~0u, sum, offset);
  if (threadIdx.x == 0) atomicAdd(out, sum);
}

extern __shared__ float dynamic_shared[];
__global__ void k_reverse(float* io) {
  dynamic_shared[threadIdx.x] = io[threadIdx.x];
  __syncthreads();
  io[threadIdx.x] = dynamic_shared[blockDim.x - 1 - threadIdx.x];
}

__global__ void k_gemm(const float* a, const float* b, float* c, int n) {
  __shared__ float as[16][16], bs[16][16];
  const int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
  float sum = 0;
  for (int k = 0; k < n; k += 16) {
    as[threadIdx.y][threadIdx.x] = a[row * n + k + threadIdx.x];
    bs[threadIdx.y][threadIdx.x] = b[(k + threadIdx.y) * n + column];
    __syncthreads();
    for (int i = 0; i < 16; i++) sum += as[threadIdx.y][i] * bs[i][threadIdx.x];
    __syncthreads();
  }
  c[row * n + column] = sum;
}

__global__ void k_nbody(const float4* bodies, float3* out, int n) {
  __shared__ float4 tile[128];
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const float4 me = bodies[i];
  float3 a = {0, 0, 0};
  for (int base = 0; base < n; base += 128) {
    tile[threadIdx.x] = bodies[base + threadIdx.x];
    __syncthreads();
    for (int j = 0; j < 128; j++) {
      const float dx = tile[j].x - me.x, dy = tile[j].y - me.y, dz = tile[j].z - me.z;
      const float r = rsqrtf(dx * dx + dy * dy + dz * dz + 1e-3f);
      const float f = tile[j].w * r * r * r;
      a.x += dx * f;
      a.y += dy * f;
      a.z += dz * f;
    }
    __syncthreads();
  }
  out[i] = a;
}

__global__ void k_math(const float* in, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float v = in[i];
  float* r = out + i * 16;
  r[0] = sinf(v);
  r[1] = cosf(v);
  r[2] = expf(v);
  r[3] = logf(fabsf(v));
  r[4] = powf(fabsf(v), 2.5f);
  r[5] = tanhf(v);
  r[6] = erff(v);
  r[7] = 1 / v;
  r[8] = sqrtf(fabsf(v));
  r[9] = rsqrtf(fabsf(v));
  r[10] = __expf(v);
  r[11] = __sinf(v);
  r[12] = atan2f(v, 2);
  r[13] = fmodf(v, 0.7f);
  r[14] = __fdividef(v, 3);
  r[15] = cbrtf(v);
}

__global__ void k_math64(const double* in, double* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const double v = in[i];
  double* r = out + i * 8;
  r[0] = sin(v);
  r[1] = cos(v);
  r[2] = exp(v);
  r[3] = log(fabs(v));
  r[4] = pow(fabs(v), 2.5);
  r[5] = tanh(v);
  r[6] = 1 / v;
  r[7] = sqrt(fabs(v));
}

__global__ void k_half(const __half* a, const __half2* b, __half* fused, __half2* packed,
                       float* sum, __nv_bfloat16* brain) {
  const int i = threadIdx.x;
  fused[i] = __hfma(a[i], a[i], __float2half(0.5f));
  packed[i] = __hadd2(__hmul2(b[i], b[i]), b[i]);
  sum[i] = __half2float(a[i]) + __low2float(b[i]);
  brain[i] = __hmul(__float2bfloat16(sum[i]), __float2bfloat16(1.25f));
}

__global__ void k_atomics(int* s, unsigned* u, unsigned long long* wide, double* d) {
  __shared__ int count;
  if (threadIdx.x == 0) count = 0;
  __syncthreads();
  atomicAdd(&count, 1);
  atomicMax(s, (int)threadIdx.x);
  atomicMin(s + 1, -(int)threadIdx.x);
  atomicAnd(u, ~(1u << (threadIdx.x & 31)));
  atomicOr(u + 1, 1u << (threadIdx.x & 15));
  atomicXor(u + 2, threadIdx.x);
  atomicInc(u + 3, 10);
  atomicDec(u + 4, 10);
  atomicExch(u + 5, 7);
  atomicCAS(u + 6, 0, threadIdx.x + 1);
  atomicAdd(wide, threadIdx.x);
  atomicAdd(d, 0.5);
  __syncthreads();
  if (threadIdx.x == 0) s[2] = count;
}

struct Mixed {
  int a;
  float b[5];
  double d;
};
__global__ void k_struct(Mixed s, float* out) {
  out[threadIdx.x] = s.b[threadIdx.x % 5] + s.a + s.d;
}
__global__ void k_printf(Mixed s) {
  printf("t %d %5.2f %s %llx %c%%\n", threadIdx.x, s.d, "str", 0x123456789abull, 'z');
}
__global__ void k_assert(const int* values) { assert(values[threadIdx.x] >= 0); }
__global__ void k_trap(int thread) {
  if (threadIdx.x == thread) __trap();
}
__global__ void k_collatz(int* out) {
  const int i = threadIdx.x;
  int v = i * 37, steps = 0;
  while (v != 1 && steps < 1000 && v > 0) {
    v = (v & 1) ? 3 * v + 1 : v / 2;
    steps++;
  }
  out[i] = steps;
}
__global__ void k_local(int* out, int n) {
  int a[64];
  for (int i = 0; i < 64; i++) a[i] = i * n + threadIdx.x;
  int sum = 0;
  for (int i = 0; i < n; i++) sum += a[(i * 7 + threadIdx.x) & 63];
  out[threadIdx.x] = sum;
}

// Half of the warps sums, the other half waits for it at a named barrier.
__global__ void k_named_barriers(int* out) {
  __shared__ int box[64];
  if (threadIdx.x < 64) {
    box[threadIdx.x] = threadIdx.x * threadIdx.x;
    asm volatile("bar.arrive 1, 128;" ::: "memory");
  } else {
    asm volatile("bar.sync 1, 128;" ::: "memory");
    out[threadIdx.x - 64] = box[127 - threadIdx.x];
  }
}
__global__ void k_vote_barrier(int* out, int limit) {
  out[threadIdx.x * 3] = __syncthreads_count(threadIdx.x < limit);
  out[threadIdx.x * 3 + 1] = __syncthreads_and(threadIdx.x < limit);
  out[threadIdx.x * 3 + 2] = __syncthreads_or(threadIdx.x < limit);
}
__global__ void k_warp(unsigned* out) {
  const unsigned lane = threadIdx.x % 32;
  unsigned* r = out + threadIdx.x * 8;
  r[0] = __ballot_sync(~0u, lane % 3 == 0);
  r[1] = __any_sync(~0u, lane == 5) + 2 * __all_sync(~0u, lane < 32);
  r[2] = __match_any_sync(~0u, lane / 5);
  r[3] = __reduce_add_sync(~0u, lane);
  r[4] = __shfl_up_sync(~0u, lane, 3, 8);
  r[5] = __shfl_sync(~0u, lane, lane + 1, 16);
  r[6] = 0;
  if (lane % 2 == 0) {
    // Only half of the warp takes part, and it reads its neighbour but one.
    r[6] = __shfl_down_sync(0x55555555, lane, 2) + 100 * __popc(__activemask());
  }
  __syncwarp();
  r[7] = __reduce_max_sync(~0u, (int)lane - 40);
}
// Lanes that diverge meet at a warp barrier to exchange through shared memory.
__global__ void k_syncwarp(int* out) {
  __shared__ int box[32];
  const int lane = threadIdx.x;
  if (lane < 16) {
    box[lane] = lane;
    __syncwarp();
    out[lane] = box[lane + 16];
  } else {
    box[lane] = lane * 2;
    __syncwarp();
    out[lane] = box[lane - 16];
  }
}
__global__ void k_spinlock(int* lock, int* counter) {
  while (atomicCAS(lock, 0, 1) != 0) {
  }
  *(volatile int*)counter = *(volatile int*)counter + 1;
  __threadfence();
  atomicExch(lock, 0);
}
struct Node {
  Node* next;
  int bytes, thread;
};
// Each thread adds nodes with some bytes behind them to one of the lists.
__global__ void k_push(Node** lists, int count, int nodes) {
  const int thread = blockIdx.x * blockDim.x + threadIdx.x;
  for (int k = 0; k < nodes; ++k) {
    const int bytes = (thread * 7 + k * 13) % 50;
    Node* node = static_cast<Node*>(malloc(sizeof(Node) + bytes));
    if (node == nullptr) return;
    node->bytes = bytes;
    node->thread = thread;
    memset(node + 1, thread, bytes);
    __threadfence();
    unsigned long long* head = reinterpret_cast<unsigned long long*>(lists + thread % count);
    const unsigned long long self = reinterpret_cast<unsigned long long>(node);
    node->next = reinterpret_cast<Node*>(atomicExch(head, self));
  }
}
// Each thread frees one list and says how many nodes had been pushed; wrong ones count a million.
__global__ void k_pop(Node** lists, int* sums) {
  int* sum = new int(0);
  for (Node* node = lists[threadIdx.x]; node != nullptr;) {
    const char* text = reinterpret_cast<const char*>(node + 1);
    const char wanted = static_cast<char>(node->thread);
    for (int k = 0; k < node->bytes; ++k) *sum += text[k] == wanted ? 0 : 1000000;
    *sum += 1;
    Node* next = node->next;
    free(node);
    node = next;
  }
  sums[threadIdx.x] = *sum;
  delete sum;
}
__global__ void k_fill_heap(int* got, size_t bytes) {
  for (int k = 0; k < 100; ++k) {
    void* block = malloc(bytes);
    if (block != nullptr) atomicAdd(got, 1);
    if (reinterpret_cast<size_t>(block) % 16 != 0) atomicAdd(got, 1000000);
  }
}
__global__ void k_grid_sync(int* data, int n) {
  cg::grid_group grid = cg::this_grid();
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  for (int round = 0; round < 4; ++round) {
    const int next = data[(i + 1) % n];
    grid.sync();
    data[i] = next + 1;
    grid.sync();
  }
}
__global__ void k_endless(volatile int* flag) {
  while (*flag == 0) {
  }
}
__global__ void k_int64(const long long* a, const long long* b, long long* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  long long* r = out + i * 8;
  r[0] = a[i] * b[i];
  r[1] = b[i] == 0 ? 0 : a[i] / b[i];
  r[2] = b[i] == 0 ? 0 : a[i] % b[i];
  r[3] = __mul64hi(a[i], b[i]);
  r[4] = a[i] >> (b[i] & 63);
  r[5] = (unsigned long long)a[i] >> (b[i] & 63);
  r[6] = __popcll(a[i]) + 100 * __clzll(b[i]);
  r[7] = a[i] < b[i] ? a[i] : b[i];
}

// One 16x8x16 product on the tensor core's instructions.
__global__ void k_mma(const __half* a, const __half* b, float* c) {
  __shared__ __align__(16) __half sa[256], sb[128];
  for (int i = threadIdx.x; i < 256; i += 32) sa[i] = a[i];
  for (int i = threadIdx.x; i < 128; i += 32) sb[i] = b[i];
  __syncwarp();
  unsigned ra[4], rb[2];
  const int lane = threadIdx.x;
  const unsigned pa = __cvta_generic_to_shared(sa + (lane % 16) * 16 + (lane / 16) * 8);
  const unsigned pb = __cvta_generic_to_shared(sb + (lane % 16) * 8);
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(ra[0]), "=r"(ra[1]), "=r"(ra[2]), "=r"(ra[3])
               : "r"(pa));
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];"
               : "=r"(rb[0]), "=r"(rb[1])
               : "r"(pb));
  float d[4] = {};
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(ra[0]), "r"(ra[1]), "r"(ra[2]), "r"(ra[3]), "r"(rb[0]), "r"(rb[1]));
  for (int e = 0; e < 4; e++) c[(lane / 4 + 8 * (e / 2)) * 8 + lane % 4 * 2 + e % 2] = d[e];
}
