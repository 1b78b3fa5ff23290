// The driver of this process: devices, tables of live handles, the sticky fault.
//
// Made by cuInit and never destroyed, so that threads and static destructors that outlive main()
// find it. A forked child inherits it without its threads: there every call answers
// CUDA_ERROR_NOT_INITIALIZED. Thread safety: every function may be called from any thread.
#pragma once

#include <cuda.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "softgpu/driver/config.h"
#include "softgpu/driver/extension.h"
#include "softgpu/driver/graph_types.h"
#include "softgpu/driver/handle_table.h"
#include "softgpu/driver/memory_map.h"
#include "softgpu/driver/virtual_memory.h"

namespace softgpu {

class Array;
class Context;
class Device;
class Event;
class ExtentHandle;
class Function;
class GraphExec;
class Library;
class LibraryKernel;
class Linker;
class MemoryPool;
class MipmappedArray;
class Module;
class Stream;
struct SurfaceObject;
struct TextureObject;

class Driver {
 public:
  // What cuInit does. Idempotent.
  static CUresult Init();
  static bool Ready();   // initialised, in this very process
  static bool Forked();  // this is the child of an initialised process
  static Driver& Get();  // REQUIRES: Ready()

  const Config& config() const { return config_; }
  int device_count() const { return static_cast<int>(devices_.size()); }
  Device* device(int ordinal);  // null when there is no such device

  MemoryMap& memory_map() { return memory_map_; }
  VirtualMemory& virtual_memory() { return *virtual_memory_; }

  // The fault that poisons the process, whatever the context.
  CUresult process_fault() const { return process_fault_.load(); }
  // What a call on this thread answers before doing anything.
  CUresult StickyError() const;
  void RaiseFault(CUresult code);

  static void SetPrintHandler(SoftgpuPrintHandler handler, void* data);
  static bool PrintToHandler(CUstream stream, std::string_view text);  // false: none installed

  // Removes every object that `context` owns.
  void ForgetContext(Context& context);

  HandleTable<Context> contexts;
  HandleTable<Stream> streams;
  HandleTable<Event> events;
  HandleTable<Module> modules;
  HandleTable<Function> functions;
  HandleTable<Library> libraries;
  HandleTable<LibraryKernel> kernels;
  HandleTable<Linker> linkers;
  HandleTable<MemoryPool> pools;
  HandleTable<ExtentHandle> extents;
  HandleTable<Array> arrays;
  HandleTable<MipmappedArray> mipmapped_arrays;
  HandleTable<TextureObject> textures;
  HandleTable<SurfaceObject> surfaces;
  HandleTable<Graph> graphs;
  HandleTable<GraphNode> graph_nodes;
  HandleTable<GraphExec> graph_execs;
  HandleTable<UserObject> user_objects;

 private:
  explicit Driver(const Config& config);
  CUresult Start();

  const Config config_;
  MemoryMap memory_map_;
  std::vector<std::unique_ptr<Device>> devices_;
  std::unique_ptr<VirtualMemory> virtual_memory_;
  std::atomic<CUresult> process_fault_{CUDA_SUCCESS};
};

}  // namespace softgpu
