// The kernels of bench_device.
extern "C" {

__global__ void saxpy(int n, float a, const float* x, float* y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}

__global__ void reduce(int n, const float* in, float* out) {
  __shared__ float part[256];
  float sum = 0;
  for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) sum += in[i];
  part[threadIdx.x] = sum;
  __syncthreads();
  for (int half = 128; half > 0; half /= 2) {
    if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) out[blockIdx.x] = part[0];
}

__global__ void scan(const int* in, int* out) {
  __shared__ int data[256];
  const int t = threadIdx.x, i = blockIdx.x * 256 + t;
  data[t] = in[i];
  __syncthreads();
  for (int step = 1; step < 256; step *= 2) {
    const int before = t >= step ? data[t - step] : 0;
    __syncthreads();
    data[t] += before;
    __syncthreads();
  }
  out[i] = data[t];
}

__global__ void transpose(int n, const float* in, float* out) {
  __shared__ float tile[32][33];
  const int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
  for (int k = 0; k < 32; k += 8) tile[threadIdx.y + k][threadIdx.x] = in[(y + k) * n + x];
  __syncthreads();
  const int u = blockIdx.y * 32 + threadIdx.x, v = blockIdx.x * 32 + threadIdx.y;
  for (int k = 0; k < 32; k += 8) out[(v + k) * n + u] = tile[threadIdx.x][threadIdx.y + k];
}

__global__ void gemm_naive(int n, const float* a, const float* b, float* c) {
  const int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
  float sum = 0;
  for (int k = 0; k < n; ++k) sum += a[y * n + k] * b[k * n + x];
  c[y * n + x] = sum;
}

__global__ void gemm_tiled(int n, const float* a, const float* b, float* c) {
  __shared__ float as[32][32], bs[32][32];
  const int tx = threadIdx.x, ty = threadIdx.y;
  const int x = blockIdx.x * 32 + tx, y = blockIdx.y * 32 + ty;
  float sum[4] = {};
  for (int t = 0; t < n; t += 32) {
    for (int r = 0; r < 4; ++r) {
      as[ty + 8 * r][tx] = a[(y + 8 * r) * n + t + tx];
      bs[ty + 8 * r][tx] = b[(t + ty + 8 * r) * n + x];
    }
    __syncthreads();
    for (int k = 0; k < 32; ++k) {
      for (int r = 0; r < 4; ++r) sum[r] += as[ty + 8 * r][k] * bs[k][tx];
    }
    __syncthreads();
  }
  for (int r = 0; r < 4; ++r) c[(y + 8 * r) * n + x] = sum[r];
}

__global__ void stencil(int n, const float* in, float* out) {
  const int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
  if (x < 1 || y < 1 || x >= n - 1 || y >= n - 1) return;
  const int i = y * n + x;
  out[i] = 0.5f * in[i] + 0.125f * (in[i - 1] + in[i + 1] + in[i - n] + in[i + n]);
}

__global__ void nbody(int n, const float4* bodies, float4* out) {
  const int i = blockIdx.x * 128 + threadIdx.x;
  const float4 me = bodies[i];
  float fx = 0, fy = 0, fz = 0;
  for (int j = 0; j < n; ++j) {
    const float4 other = bodies[j];
    const float dx = other.x - me.x, dy = other.y - me.y, dz = other.z - me.z;
    const float inverse = rsqrtf(dx * dx + dy * dy + dz * dz + 0.01f);
    const float pull = other.w * inverse * inverse * inverse;
    fx += pull * dx;
    fy += pull * dy;
    fz += pull * dz;
  }
  out[i] = make_float4(fx, fy, fz, 0);
}

__global__ void histogram(int n, const unsigned* in, unsigned* bins) {
  __shared__ unsigned mine[256];
  mine[threadIdx.x] = 0;
  __syncthreads();
  for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256)
    atomicAdd(&mine[in[i] & 255], 1);
  __syncthreads();
  atomicAdd(&bins[threadIdx.x], mine[threadIdx.x]);
}

__global__ void black_scholes(int n, const float* price, const float* strike, float* call) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  if (i >= n) return;
  const float s = price[i], x = strike[i], years = 2.0f, rate = 0.02f, volatility = 0.3f;
  const float root = sqrtf(years);
  const float d1 =
      (__logf(s / x) + (rate + 0.5f * volatility * volatility) * years) / (volatility * root);
  const float d2 = d1 - volatility * root;
  float cnd[2];
  for (int k = 0; k < 2; ++k) {
    const float d = k == 0 ? d1 : d2;
    const float t = 1.0f / (1.0f + 0.2316419f * fabsf(d));
    const float p =
        t * (0.31938153f +
             t * (-0.356563782f + t * (1.781477937f + t * (-1.821255978f + t * 1.330274429f))));
    const float tail = 0.39894228f * __expf(-0.5f * d * d) * p;
    cnd[k] = d > 0 ? 1.0f - tail : tail;
  }
  call[i] = s * cnd[0] - x * __expf(-rate * years) * cnd[1];
}

__global__ void spmv(int rows, const int* begin, const int* columns, const float* values,
                     const float* x, float* y) {
  const int row = blockIdx.x * 128 + threadIdx.x;
  if (row >= rows) return;
  float sum = 0;
  for (int k = begin[row]; k < begin[row + 1]; ++k) sum += values[k] * x[columns[k]];
  y[row] = sum;
}

__global__ void bitonic(int* data) {
  __shared__ int s[256];
  const int t = threadIdx.x;
  s[t] = data[blockIdx.x * 256 + t];
  __syncthreads();
  for (int size = 2; size <= 256; size *= 2) {
    for (int step = size / 2; step > 0; step /= 2) {
      const int other = t ^ step;
      const int mine = s[t], theirs = s[other];
      const bool up = (t & size) == 0, low = t < other;
      __syncthreads();
      s[t] = (mine < theirs) == (up == low) ? mine : theirs;
      __syncthreads();
    }
  }
  data[blockIdx.x * 256 + t] = s[t];
}

__global__ void softmax(int n, const float* in, float* out) {
  const float* row = in + blockIdx.x * n;
  float most = -1e30f, sum = 0;
  for (int i = threadIdx.x; i < n; i += 32) most = fmaxf(most, row[i]);
  for (int d = 16; d > 0; d /= 2) most = fmaxf(most, __shfl_xor_sync(~0u, most, d));
  for (int i = threadIdx.x; i < n; i += 32) sum += __expf(row[i] - most);
  for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
  for (int i = threadIdx.x; i < n; i += 32) out[blockIdx.x * n + i] = __expf(row[i] - most) / sum;
}

__global__ void empty() {}

}  // extern "C"
