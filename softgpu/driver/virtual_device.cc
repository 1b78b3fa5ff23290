#include "softgpu/driver/virtual_device.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <optional>

#include "base/find.h"
#include "softgpu/driver/operation.h"
#include "softgpu/driver/stream.h"

namespace softgpu {
namespace {

using scheduler::streams::Timeline;

// A program with more unfinished operations waits for its stream: the memory for them has a bound.
constexpr size_t kPendingMax = 64 << 10;

// Never destroyed, as the driver is.
std::atomic<VirtualDevice*> opened{nullptr};

// The whole file; nothing and `error` filled otherwise. `fd` is closed.
std::optional<std::string> ReadTable(int fd, std::string* error) {
  struct stat status = {};
  std::string text;
  if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) || status.st_uid != geteuid()) {
    *error = "it is no regular file of this user";
  } else if (static_cast<uint64_t>(status.st_size) > TimingTable::kBytesMax) {
    *error = "it has more than 16 MiB";
  } else {
    text.resize(static_cast<size_t>(status.st_size));
    const ssize_t bytes = pread(fd, text.data(), text.size(), 0);
    if (bytes != status.st_size) *error = "it cannot be read whole";
  }
  close(fd);
  if (!error->empty()) return std::nullopt;
  return text;
}

}  // namespace

VirtualDevice::VirtualDevice(TimingTable table)
    : table_(std::move(table)), timeline_(table_.device().roofline.front_end_ns) {}

VirtualDevice* VirtualDevice::Get() { return opened.load(); }

bool VirtualDevice::Open(const std::string& path, std::string* error) {
  error->clear();
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  std::optional<TimingTable> table;
  if (fd < 0) {
    *error = std::strerror(errno);
  } else if (const std::optional<std::string> text = ReadTable(fd, error)) {
    table = TimingTable::ParseUntrusted(*text, error);
  }
  if (table) {
    opened = new VirtualDevice(*std::move(table));
    return true;
  }
  *error = "LANEWAY_SOFTGPU: timing=" + path + " cannot be used: " + *error;
  return false;
}

std::vector<VirtualDevice::Moment> VirtualDevice::EndsOf(const Streams& streams) {
  std::vector<Moment> ends;
  for (const std::shared_ptr<Stream>& stream : streams) {
    const Moment* const end = base::FindOrNull(ends_, stream->id());
    if (end != nullptr) ends.push_back(*end);
  }
  return ends;
}

void VirtualDevice::Enter(const Stream& stream, const Streams& others, Operation* operation) {
  base::MutexLock lock(&mutex_);
  std::vector<Moment> before = EndsOf(others);
  Moment& end = ends_[stream.id()];
  before.push_back(end);
  end = operation->Enter(&timeline_, timeline_.Join(before));
  if (timeline_.pending() > kPendingMax) timeline_.Wait(end);
}

VirtualDevice::Moment VirtualDevice::EndOf(const Streams& streams) {
  base::MutexLock lock(&mutex_);
  return timeline_.Join(EndsOf(streams));
}

double VirtualDevice::Observe(const Moment& moment) {
  base::MutexLock lock(&mutex_);
  return timeline_.Wait(moment);
}

void VirtualDevice::Forget(const Stream& stream) {
  base::MutexLock lock(&mutex_);
  ends_.erase(stream.id());
}

}  // namespace softgpu
