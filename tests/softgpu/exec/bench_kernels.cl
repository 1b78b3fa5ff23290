// The kernels of bench_kernels.cu, line by line, in OpenCL C. There are no shuffles here: softmax
// reduces in local memory.
kernel void saxpy(int n, float a, global const float* x, global float* y) {
  const int i = get_global_id(0);
  if (i < n) y[i] = a * x[i] + y[i];
}

kernel void reduce(int n, global const float* in, global float* out) {
  local float part[256];
  const int t = get_local_id(0);
  float sum = 0;
  for (int i = get_global_id(0); i < n; i += get_global_size(0)) sum += in[i];
  part[t] = sum;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int half_size = 128; half_size > 0; half_size /= 2) {
    if (t < half_size) part[t] += part[t + half_size];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (t == 0) out[get_group_id(0)] = part[0];
}

kernel void scan(global const int* in, global int* out) {
  local int data[256];
  const int t = get_local_id(0), i = get_global_id(0);
  data[t] = in[i];
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int step = 1; step < 256; step *= 2) {
    const int before = t >= step ? data[t - step] : 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    data[t] += before;
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  out[i] = data[t];
}

kernel void transpose(int n, global const float* in, global float* out) {
  local float tile[32][33];
  const int tx = get_local_id(0), ty = get_local_id(1);
  const int x = get_group_id(0) * 32 + tx, y = get_group_id(1) * 32 + ty;
  for (int k = 0; k < 32; k += 8) tile[ty + k][tx] = in[(y + k) * n + x];
  barrier(CLK_LOCAL_MEM_FENCE);
  const int u = get_group_id(1) * 32 + tx, v = get_group_id(0) * 32 + ty;
  for (int k = 0; k < 32; k += 8) out[(v + k) * n + u] = tile[tx][ty + k];
}

kernel void gemm_naive(int n, global const float* a, global const float* b, global float* c) {
  const int x = get_global_id(0), y = get_global_id(1);
  float sum = 0;
  for (int k = 0; k < n; ++k) sum += a[y * n + k] * b[k * n + x];
  c[y * n + x] = sum;
}

kernel void gemm_tiled(int n, global const float* a, global const float* b, global float* c) {
  local float as[32][32], bs[32][32];
  const int tx = get_local_id(0), ty = get_local_id(1);
  const int x = get_group_id(0) * 32 + tx, y = get_group_id(1) * 32 + ty;
  float sum[4] = {0, 0, 0, 0};
  for (int t = 0; t < n; t += 32) {
    for (int r = 0; r < 4; ++r) {
      as[ty + 8 * r][tx] = a[(y + 8 * r) * n + t + tx];
      bs[ty + 8 * r][tx] = b[(t + ty + 8 * r) * n + x];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int k = 0; k < 32; ++k) {
      for (int r = 0; r < 4; ++r) sum[r] += as[ty + 8 * r][k] * bs[k][tx];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  for (int r = 0; r < 4; ++r) c[(y + 8 * r) * n + x] = sum[r];
}

kernel void stencil(int n, global const float* in, global float* out) {
  const int x = get_global_id(0), y = get_global_id(1);
  if (x < 1 || y < 1 || x >= n - 1 || y >= n - 1) return;
  const int i = y * n + x;
  out[i] = 0.5f * in[i] + 0.125f * (in[i - 1] + in[i + 1] + in[i - n] + in[i + n]);
}

kernel void nbody(int n, global const float4* bodies, global float4* out) {
  const int i = get_global_id(0);
  const float4 me = bodies[i];
  float fx = 0, fy = 0, fz = 0;
  for (int j = 0; j < n; ++j) {
    const float4 other = bodies[j];
    const float dx = other.x - me.x, dy = other.y - me.y, dz = other.z - me.z;
    const float inverse = rsqrt(dx * dx + dy * dy + dz * dz + 0.01f);
    const float pull = other.w * inverse * inverse * inverse;
    fx += pull * dx;
    fy += pull * dy;
    fz += pull * dz;
  }
  out[i] = (float4)(fx, fy, fz, 0);
}

kernel void histogram(int n, global const uint* in, global uint* bins) {
  local uint mine[256];
  const int t = get_local_id(0);
  mine[t] = 0;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int i = get_global_id(0); i < n; i += get_global_size(0)) atomic_inc(&mine[in[i] & 255]);
  barrier(CLK_LOCAL_MEM_FENCE);
  atomic_add(&bins[t], mine[t]);
}

kernel void black_scholes(int n, global const float* price, global const float* strike,
                          global float* call) {
  const int i = get_global_id(0);
  if (i >= n) return;
  const float s = price[i], x = strike[i], years = 2.0f, rate = 0.02f, volatility = 0.3f;
  const float root = sqrt(years);
  const float d1 =
      (native_log(s / x) + (rate + 0.5f * volatility * volatility) * years) / (volatility * root);
  const float d2 = d1 - volatility * root;
  float cnd[2];
  for (int k = 0; k < 2; ++k) {
    const float d = k == 0 ? d1 : d2;
    const float t = 1.0f / (1.0f + 0.2316419f * fabs(d));
    const float p =
        t * (0.31938153f +
             t * (-0.356563782f + t * (1.781477937f + t * (-1.821255978f + t * 1.330274429f))));
    const float tail = 0.39894228f * native_exp(-0.5f * d * d) * p;
    cnd[k] = d > 0 ? 1.0f - tail : tail;
  }
  call[i] = s * cnd[0] - x * native_exp(-rate * years) * cnd[1];
}

kernel void spmv(int rows, global const int* begin, global const int* columns,
                 global const float* values, global const float* x, global float* y) {
  const int row = get_global_id(0);
  if (row >= rows) return;
  float sum = 0;
  for (int k = begin[row]; k < begin[row + 1]; ++k) sum += values[k] * x[columns[k]];
  y[row] = sum;
}

kernel void bitonic(global int* data) {
  local int s[256];
  const int t = get_local_id(0);
  s[t] = data[get_global_id(0)];
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int size = 2; size <= 256; size *= 2) {
    for (int step = size / 2; step > 0; step /= 2) {
      const int other = t ^ step;
      const int mine = s[t], theirs = s[other];
      const bool up = (t & size) == 0, low = t < other;
      barrier(CLK_LOCAL_MEM_FENCE);
      s[t] = (mine < theirs) == (up == low) ? mine : theirs;
      barrier(CLK_LOCAL_MEM_FENCE);
    }
  }
  data[get_global_id(0)] = s[t];
}

kernel void softmax(int n, global const float* in, global float* out) {
  local float part[32];
  const int t = get_local_id(0);
  global const float* row = in + get_group_id(0) * n;
  float most = -1e30f, sum = 0;
  for (int i = t; i < n; i += 32) most = fmax(most, row[i]);
  part[t] = most;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int d = 16; d > 0; d /= 2) {
    if (t < d) part[t] = fmax(part[t], part[t + d]);
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  most = part[0];
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int i = t; i < n; i += 32) sum += native_exp(row[i] - most);
  part[t] = sum;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int d = 16; d > 0; d /= 2) {
    if (t < d) part[t] += part[t + d];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  sum = part[0];
  for (int i = t; i < n; i += 32) out[get_group_id(0) * n + i] = native_exp(row[i] - most) / sum;
}
