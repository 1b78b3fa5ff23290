#include "softgpu/driver/fatbin.h"

#include <lz4.h>
#include <zstd.h>

#include <cstring>

#include "ipc/calls/limits.h"

namespace softgpu {
namespace {

constexpr size_t kEntryHeaderBytesMin = 64;
constexpr uint64_t kFlagLz4 = 0x2000, kFlagZstd = 0x8000;
constexpr uint64_t kExpandedBytesMax = ipc::limits::kModuleBytesMax;

template <class T>
T Load(const void* base, size_t offset) {
  T value;
  std::memcpy(&value, static_cast<const std::byte*>(base) + offset, sizeof value);
  return value;
}

template <class T>
void Store(std::string* bytes, size_t offset, T value) {
  std::memcpy(bytes->data() + offset, &value, sizeof value);
}

FatbinCompression CompressionOf(uint64_t flags) {
  if ((flags & kFlagLz4) != 0) return FatbinCompression::kLz4;
  return (flags & kFlagZstd) != 0 ? FatbinCompression::kZstd : FatbinCompression::kNone;
}

// Reads the entry that `rest` begins with and moves `rest` past it.
bool TakeEntryUntrusted(std::span<const std::byte>* rest, FatbinEntry* entry, uint16_t* kind) {
  if (rest->size() < kEntryHeaderBytesMin) return false;
  const std::byte* const header = rest->data();
  const uint32_t header_bytes = Load<uint32_t>(header, 4);
  const uint64_t payload_bytes = Load<uint64_t>(header, 8);
  if (header_bytes < kEntryHeaderBytesMin || header_bytes > rest->size()) return false;
  if (payload_bytes > rest->size() - header_bytes) return false;
  *kind = Load<uint16_t>(header, 0);
  entry->kind = static_cast<FatbinKind>(*kind);
  entry->architecture = Load<uint32_t>(header, 28);
  entry->compression = CompressionOf(Load<uint64_t>(header, 40));
  entry->uncompressed_bytes = Load<uint64_t>(header, 56);
  entry->payload = rest->subspan(header_bytes, payload_bytes);
  if (entry->compression != FatbinCompression::kNone) {
    const uint32_t compressed_bytes = Load<uint32_t>(header, 16);
    if (compressed_bytes > payload_bytes) return false;
    entry->payload = entry->payload.first(compressed_bytes);
  }
  *rest = rest->subspan(header_bytes + payload_bytes);
  return true;
}

}  // namespace

uint64_t FatbinBytesUntrusted(const void* header) {
  if (Load<uint32_t>(header, 0) != kFatbinMagic) return 0;
  const uint16_t header_bytes = Load<uint16_t>(header, 6);
  const uint64_t entries_bytes = Load<uint64_t>(header, 8);
  if (header_bytes < kFatbinHeaderBytes || entries_bytes > ipc::limits::kModuleBytesMax) return 0;
  return header_bytes + entries_bytes;
}

bool ParseFatbinUntrusted(std::span<const std::byte> container, std::vector<FatbinEntry>* entries,
                          std::string* error) {
  if (container.size() < kFatbinHeaderBytes || FatbinBytesUntrusted(container.data()) == 0 ||
      FatbinBytesUntrusted(container.data()) > container.size()) {
    *error = "this is not a whole fat binary";
    return false;
  }
  std::span<const std::byte> rest = container.first(FatbinBytesUntrusted(container.data()));
  rest = rest.subspan(Load<uint16_t>(container.data(), 6));
  while (!rest.empty()) {
    FatbinEntry entry;
    uint16_t kind = 0;
    if (!TakeEntryUntrusted(&rest, &entry, &kind)) {
      *error = "an entry of the fat binary is damaged";
      return false;
    }
    if (kind == static_cast<uint16_t>(FatbinKind::kPtx) ||
        kind == static_cast<uint16_t>(FatbinKind::kElf)) {
      entries->push_back(entry);
    }
  }
  return true;
}

const FatbinEntry* NewestPtx(std::span<const FatbinEntry> entries) {
  const FatbinEntry* newest = nullptr;
  for (const FatbinEntry& entry : entries) {
    if (entry.kind != FatbinKind::kPtx) continue;
    if (newest == nullptr || entry.architecture > newest->architecture) newest = &entry;
  }
  return newest;
}

bool ExpandUntrusted(const FatbinEntry& entry, std::string* bytes, std::string* error) {
  const char* const data = reinterpret_cast<const char*>(entry.payload.data());
  if (entry.compression == FatbinCompression::kNone) {
    bytes->assign(data, entry.payload.size());
    return true;
  }
  if (entry.uncompressed_bytes > kExpandedBytesMax) {
    *error = "an entry of the fat binary claims to be larger than 1 GiB";
    return false;
  }
  bytes->resize(entry.uncompressed_bytes);
  bool whole = false;
  if (entry.compression == FatbinCompression::kLz4) {
    const int written =
        LZ4_decompress_safe(data, bytes->data(), static_cast<int>(entry.payload.size()),
                            static_cast<int>(bytes->size()));
    whole = written >= 0 && static_cast<uint64_t>(written) == entry.uncompressed_bytes;
  } else {
    const size_t written =
        ZSTD_decompress(bytes->data(), bytes->size(), data, entry.payload.size());
    whole = ZSTD_isError(written) == 0 && written == entry.uncompressed_bytes;
  }
  if (!whole) *error = "a compressed entry of the fat binary is damaged";
  return whole;
}

std::string MakeFatbin(std::string_view ptx, uint32_t architecture) {
  const uint64_t payload_bytes = (ptx.size() + 1 + 7) & ~uint64_t{7};
  std::string bytes(kFatbinHeaderBytes + kEntryHeaderBytesMin + payload_bytes, '\0');
  Store<uint32_t>(&bytes, 0, kFatbinMagic);
  Store<uint16_t>(&bytes, 4, 1);
  Store<uint16_t>(&bytes, 6, kFatbinHeaderBytes);
  Store<uint64_t>(&bytes, 8, kEntryHeaderBytesMin + payload_bytes);
  const size_t entry = kFatbinHeaderBytes;
  Store<uint16_t>(&bytes, entry, static_cast<uint16_t>(FatbinKind::kPtx));
  Store<uint16_t>(&bytes, entry + 2, 0x101);
  Store<uint32_t>(&bytes, entry + 4, kEntryHeaderBytesMin);
  Store<uint64_t>(&bytes, entry + 8, payload_bytes);
  Store<uint32_t>(&bytes, entry + 28, architecture);
  std::memcpy(bytes.data() + entry + kEntryHeaderBytesMin, ptx.data(), ptx.size());
  return bytes;
}

}  // namespace softgpu
