// A libcuda.so.1 for tests of the runtime: it executes nothing, counts the calls it gets, and
// answers with what the test asks for. One device, whose "addresses" are host memory. Thread
// safety: safe; the counts are atomic.
#pragma once

#include <cuda.h>

#include <cstddef>

extern "C" {

// Calls of any driver function, and of the named one, since the process began.
unsigned long fake_calls();
unsigned long fake_calls_of(const char* function);

// What every call of `function` returns from now on; CUDA_SUCCESS lets it work again.
void fake_fail(const char* function, CUresult result);

// The bytes of all inputs of the last link.
size_t fake_linked_bytes();

// The stream of the last launch.
CUstream fake_launch_stream();

}  // extern "C"
