// Where the figures come from that our NVML tells: lanewayd (shim/nvml/), or the software GPU that
// a program uses without Laneway (softgpu/nvml/). Each of the two libraries links one source.
//
// Thread safety: State calls a source under its lock, one call at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace nvml {

struct Process {
  uint32_t pid = 0;
  uint64_t bytes = 0;
};

struct Device {
  std::string name;
  std::string uuid;          // GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx
  std::string pci_bus_id;    // DDDD:BB:DD.F
  int major = 0, minor = 0;  // compute capability
  unsigned multiprocessors = 0;
  uint64_t total_bytes = 0;  // that the program may use
  uint64_t used_bytes = 0;
  std::optional<unsigned> busy_percent;
  std::vector<Process> processes;  // that the caller may see
};

struct Snapshot {
  bool on_gpu = false;          // the vendor's NVML knows these devices, too
  std::vector<Device> devices;  // in the order in which the program's CUDA numbers them
};

class Source {
 public:
  virtual ~Source() = default;
  // False: the devices could not be read, and `snapshot` is unchanged.
  virtual bool Read(Snapshot* snapshot) = 0;
};

// Never destroyed: calls may come as late as a program's last destructor.
Source& TheSource();

}  // namespace nvml
