#include "daemon/worker/session_bytes.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>

#include "daemon/worker/memory_stream.h"
#include "ipc/driver_table.h"

namespace worker {

std::optional<SessionBytes> SessionBytes::Save(const Environment& environment, int device,
                                               const OwnAddresses& addresses,
                                               const AddressSpan& left_out, uint64_t bytes_max) {
  std::vector<std::pair<uint64_t, uint64_t>> backed = addresses.Backed();
  std::erase_if(backed, [&left_out](const std::pair<uint64_t, uint64_t>& range) {
    return range.first - left_out.address < left_out.bytes;
  });
  uint64_t sum = 0;
  for (const auto& [address, bytes] : backed) sum += bytes;
  if (sum > bytes_max) return std::nullopt;
  MemoryStream stream(environment, device);
  if (stream.status() != CUDA_SUCCESS) return std::nullopt;
  SessionBytes saved;
  CUresult result = CUDA_SUCCESS;
  for (const auto& [address, bytes] : backed) {
    Range& range = saved.ranges_.emplace_back(Range{address, std::vector<std::byte>(bytes)});
    if (result == CUDA_SUCCESS)
      result = environment.driver->cuMemcpyDtoHAsync_v2(range.bytes.data(), address, bytes,
                                                        stream.get());
  }
  if (stream.Wait() != CUDA_SUCCESS || result != CUDA_SUCCESS) return std::nullopt;
  return saved;
}

CUresult SessionBytes::Restore(const Environment& environment, int device) const {
  MemoryStream stream(environment, device);
  CUresult result = stream.status();
  if (result != CUDA_SUCCESS) return result;
  for (const Range& range : ranges_) {
    if (result == CUDA_SUCCESS)
      result = environment.driver->cuMemcpyHtoDAsync_v2(range.address, range.bytes.data(),
                                                        range.bytes.size(), stream.get());
  }
  const CUresult waited = stream.Wait();
  return result == CUDA_SUCCESS ? waited : result;
}

std::optional<uint64_t> SessionBytes::FirstDifference(const SessionBytes& other) const {
  if (ranges_.size() != other.ranges_.size()) return std::nullopt;
  for (size_t i = 0; i < ranges_.size(); ++i) {
    const std::vector<std::byte>&left = ranges_[i].bytes, &right = other.ranges_[i].bytes;
    if (ranges_[i].address != other.ranges_[i].address || left.size() != right.size())
      return std::nullopt;
    const auto at = std::mismatch(left.begin(), left.end(), right.begin()).first;
    if (at != left.end()) return ranges_[i].address + static_cast<uint64_t>(at - left.begin());
  }
  return std::nullopt;
}

bool SessionBytes::AnyWord(bool (*is_of_kind)(uint64_t word)) const {
  for (const Range& range : ranges_) {
    for (size_t at = 0; at + sizeof(uint64_t) <= range.bytes.size(); at += sizeof(uint64_t)) {
      uint64_t word = 0;
      std::memcpy(&word, range.bytes.data() + at, sizeof word);
      if (is_of_kind(word)) return true;
    }
  }
  return false;
}

std::byte SessionBytes::At(uint64_t address) const {
  for (const Range& range : ranges_) {
    if (address >= range.address && address - range.address < range.bytes.size())
      return range.bytes[address - range.address];
  }
  assert(false);
  return std::byte{0};
}

}  // namespace worker
