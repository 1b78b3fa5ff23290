// Loops of loops.cu that solve instead of learning.
// Thread safety: none.
#pragma once

#include <vector>

#include "laneway.h"
#include "network.h"

// A snapshot after every twenty steps; nothing else waits.
inline void Simulate(int steps) {
  const int n = 4096;
  float *positions, *accelerations;
  CHECK(cudaMalloc(&positions, n * sizeof(float)));
  CHECK(cudaMalloc(&accelerations, n * sizeof(float)));
  std::vector<float> host(n, 1.0f);
  CHECK(cudaMemcpy(positions, host.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  for (int step = 0; step < steps; ++step) {
    laneway_iteration();
    Force<<<Blocks(n), 128>>>(accelerations, positions, n);
    Move<<<Blocks(n), 128>>>(positions, accelerations, n);
    if (step % 20 == 19)
      CHECK(cudaMemcpy(host.data(), positions, n * sizeof(float), cudaMemcpyDeviceToHost));
  }
}

// Factorizations of matrices, a column and what is left of the matrix at a time: the same two
// kernels, with less to do each time. A whole one is the iteration.
inline void Factorize(int matrices) {
  constexpr int kColumns = 160, kThreads = 32;
  constexpr int n = kColumns * kThreads;
  float *matrix, *column;
  CHECK(cudaMalloc(&matrix, n * sizeof(float)));
  CHECK(cudaMalloc(&column, n * sizeof(float)));
  std::vector<float> host(n, 1.0f);
  for (int i = 0; i < matrices; ++i) {
    laneway_iteration();
    CHECK(cudaMemcpy(matrix, host.data(), n * sizeof(float), cudaMemcpyHostToDevice));
    for (int k = 0; k < kColumns; ++k) {
      const int rest = kColumns - k;
      Force<<<rest, kThreads>>>(column, matrix, rest * kThreads);
      Move<<<rest, kThreads>>>(matrix, column, rest * kThreads);
    }
    CHECK(cudaMemcpy(host.data(), matrix, n * sizeof(float), cudaMemcpyDeviceToHost));
  }
}
