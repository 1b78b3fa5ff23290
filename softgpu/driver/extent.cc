#include "softgpu/driver/extent.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <string>
#include <string_view>

namespace softgpu {
namespace {

constexpr char kNamePrefix[] = "softgpu-extent-";
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

std::atomic<uint64_t> next_extent_id{1};

std::string NameOf(const CUmemLocation& location) {
  return kNamePrefix + std::to_string(static_cast<int>(location.type)) + "-" +
         std::to_string(location.id);
}

// The location that NameOf() wrote, read back from the descriptor's name.
bool ReadLocationUntrusted(int descriptor, CUmemLocation* location) {
  char path[64], name[256];
  std::snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
  const ssize_t length = readlink(path, name, sizeof name - 1);
  if (length <= 0) return false;
  name[length] = '\0';
  int type = 0;
  const std::string format = std::string("/memfd:") + kNamePrefix + "%d-%d";
  if (std::sscanf(name, format.c_str(), &type, &location->id) != 2) return false;
  if (type < CU_MEM_LOCATION_TYPE_DEVICE || type > CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT)
    return false;
  location->type = static_cast<CUmemLocationType>(type);
  return location->id >= 0;
}

}  // namespace

Extent::Extent(int descriptor, uint64_t bytes, const CUmemAllocationProp& properties, Charge charge)
    : descriptor_(descriptor),
      bytes_(bytes),
      properties_(properties),
      id_(next_extent_id.fetch_add(1)),
      charge_(std::move(charge)) {}

Extent::~Extent() { close(descriptor_); }

std::shared_ptr<Extent> Extent::Create(uint64_t bytes, const CUmemAllocationProp& properties,
                                       Charge charge) {
  const int descriptor =
      memfd_create(NameOf(properties.location).c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (descriptor < 0) return nullptr;
  if (ftruncate(descriptor, static_cast<off_t>(bytes)) != 0 ||
      fcntl(descriptor, F_ADD_SEALS, kSeals) != 0) {
    close(descriptor);
    return nullptr;
  }
  return std::shared_ptr<Extent>(new Extent(descriptor, bytes, properties, std::move(charge)));
}

std::shared_ptr<Extent> Extent::ImportUntrusted(int descriptor) {
  CUmemAllocationProp properties = {};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  struct stat status;
  if (fstat(descriptor, &status) != 0 || !ReadLocationUntrusted(descriptor, &properties.location)) {
    return nullptr;
  }
  const uint64_t bytes = static_cast<uint64_t>(status.st_size);
  const int seals = fcntl(descriptor, F_GET_SEALS);
  if (seals < 0 || (seals & kSeals) != kSeals) return nullptr;
  if (bytes == 0 || bytes % kGranularity != 0) return nullptr;
  const int own = fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
  if (own < 0) return nullptr;
  return std::shared_ptr<Extent>(new Extent(own, bytes, properties, Charge()));
}

}  // namespace softgpu
