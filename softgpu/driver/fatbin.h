// The fat binary container: everything this driver relies on that only compilers' output documents.
//
//   wrapper  (what host code registers)  u32 magic 0x466243B1, u32 version, pointer to the
//   container, ... container   u32 magic 0xBA55ED50, u16 version, u16 header bytes (16), u64 bytes
//   of all entries entry       u16 kind (1 PTX, 2 ELF), u16 version, u32 header bytes, u64 payload
//   bytes (padded),
//               u32 compressed bytes at 16, u32 architecture at 28, u64 flags at 40 (0x2000 LZ4,
//               0x8000 zstd), u64 uncompressed bytes at 56; the payload follows the header, the
//               next entry follows that
//
// All numbers are little endian. Entries of other kinds are skipped.
// Thread safety: functions without state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace softgpu {

inline constexpr uint32_t kFatbinMagic = 0xBA55ED50;
inline constexpr uint32_t kFatbinWrapperMagic = 0x466243B1;
inline constexpr size_t kFatbinHeaderBytes = 16;

enum class FatbinKind : uint16_t { kPtx = 1, kElf = 2 };
enum class FatbinCompression { kNone, kLz4, kZstd };

struct FatbinEntry {
  FatbinKind kind = FatbinKind::kPtx;
  FatbinCompression compression = FatbinCompression::kNone;
  uint32_t architecture = 0;  // 80 for sm_80
  uint64_t uncompressed_bytes = 0;
  std::span<const std::byte> payload;  // as stored
};

// Bytes of the container that `header` begins, or 0 when it is none. REQUIRES: kFatbinHeaderBytes
// readable.
uint64_t FatbinBytesUntrusted(const void* header);

// Lists the PTX and ELF entries of a whole container. False, with a sentence, when it is damaged.
bool ParseFatbinUntrusted(std::span<const std::byte> container, std::vector<FatbinEntry>* entries,
                          std::string* error);

// The PTX entry of the newest architecture, or null when there is no PTX.
const FatbinEntry* NewestPtx(std::span<const FatbinEntry> entries);

// The entry's bytes, uncompressed. False, with a sentence, when they can't be.
bool ExpandUntrusted(const FatbinEntry& entry, std::string* bytes, std::string* error);

// A container with one uncompressed PTX entry: what cuLinkComplete returns.
std::string MakeFatbin(std::string_view ptx, uint32_t architecture);

}  // namespace softgpu
