// The executor that compiles: decides when, has it done, and hands compiled kernels to launches.
//
// Interpreting begins at once. A kernel whose launches have taken kHotNs is compiled on a thread of
// the process's own, one at a time, and used from the next launch on. Executor::kLlvm compiles
// before the first launch instead, for tests. Thread safety: every function may be called from any
// thread.
#pragma once

#include <string>

namespace softgpu::jit {

enum class Executor { kAuto, kInterpreter, kLlvm };

// Before the launches that it is for, on one thread. cache: keep compiled kernels on disk
// (cache.h). `directory`, where the first call says so, has the compiler's plugin; else it is
// beside this library.
void UseExecutor(Executor executor, bool cache, const std::string& directory = "");

// Whether the plugin is there and works on this processor; why not, otherwise. Loads it.
bool CompilerWorks(std::string* error);

// Kernels that launches ran compiled so far: for tests and benchmarks.
uint64_t CompiledLaunches();

}  // namespace softgpu::jit
