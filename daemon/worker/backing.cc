#include "daemon/worker/backing.h"

#include <algorithm>
#include <bit>
#include <cassert>

#include "ipc/calls/limits.h"
#include "ipc/driver_table.h"

namespace worker {

CUresult MapExtent(const Environment& environment, int device, CUdeviceptr address,
                   const Extent& extent) {
  const ipc::DriverTable& driver = *environment.driver;
  CUresult result = driver.cuMemMap(address, extent.bytes, 0, extent.handle, 0);
  if (result != CUDA_SUCCESS) return result;
  const CUmemAccessDesc access{.location = {CU_MEM_LOCATION_TYPE_DEVICE, {device}},
                               .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  result = driver.cuMemSetAccess(address, extent.bytes, &access, 1);
  if (result != CUDA_SUCCESS) driver.cuMemUnmap(address, extent.bytes);
  return result;
}

CUresult Backing::Back(int device, CUdeviceptr address, uint64_t bytes, uint64_t extent_bytes_max,
                       std::vector<Piece>* pieces) const {
  assert(bytes % ipc::limits::kExtentBytesMin == 0 && std::has_single_bit(extent_bytes_max));
  std::vector<Piece> made;
  for (uint64_t done = 0; done < bytes;) {
    Piece piece{address + done, {}};
    const uint64_t size = std::min<uint64_t>(std::bit_floor(bytes - done), extent_bytes_max);
    CUresult result = environment_.extents->Create(session_id_, device, size, &piece.extent);
    if (result == CUDA_SUCCESS) {
      result = MapExtent(environment_, device, piece.address, piece.extent);
      if (result != CUDA_SUCCESS) environment_.extents->Free(piece.extent);
    }
    if (result != CUDA_SUCCESS) {
      Release(made);
      return result;
    }
    made.push_back(piece);
    done += size;
  }
  pieces->insert(pieces->end(), made.begin(), made.end());
  return CUDA_SUCCESS;
}

void Backing::Release(const std::vector<Piece>& pieces) const {
  for (const Piece& piece : pieces) {
    environment_.driver->cuMemUnmap(piece.address, piece.extent.bytes);
    environment_.extents->Free(piece.extent);
  }
}

uint64_t BytesOf(const std::vector<Piece>& pieces) {
  uint64_t bytes = 0;
  for (const Piece& piece : pieces) bytes += piece.extent.bytes;
  return bytes;
}

}  // namespace worker
