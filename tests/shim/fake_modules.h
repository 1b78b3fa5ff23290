// Modules of the fake driver, and what is launched of them.
//
// Each name is a function of each module, with the parameters (u64, u32, u8[3] at 16). A link of
// images is the last of them. Thread safety: any thread.
#pragma once

#include "ipc/calls/vendor.h"

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "ipc/driver_table.h"

namespace shim_test {

// Fills in what concerns modules, functions and launches.
void AddModules(ipc::DriverTable* table);

struct SeenLaunch {
  std::string function;
  unsigned grid[3] = {}, block[3] = {}, shared_bytes = 0;
  CUstream stream = nullptr;
  std::vector<std::byte> params;
  std::vector<CUlaunchAttribute> attributes;
};

class FakeModules {
 public:
  static FakeModules& Process();

  CUfunction AddFunction(const char* name) EXCLUDES(mutex_);
  // Null: no function has this handle. It stays valid.
  const char* NameOf(CUfunction function) EXCLUDES(mutex_);

  void AddLaunch(SeenLaunch launch) EXCLUDES(mutex_);
  std::vector<SeenLaunch> launches() EXCLUDES(mutex_);

 private:
  base::Mutex mutex_;
  std::map<CUfunction, std::string> names_ GUARDED_BY(mutex_);
  std::vector<SeenLaunch> launches_ GUARDED_BY(mutex_);
};

}  // namespace shim_test
