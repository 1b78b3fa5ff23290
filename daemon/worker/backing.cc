#include "daemon/worker/backing.h"

#include <algorithm>
#include <bit>
#include <cassert>

#include "daemon/worker/backed_addresses.h"
#include "daemon/worker/memory_stream.h"
#include "ipc/calls/limits.h"
#include "ipc/driver_table.h"

namespace worker {

uint64_t BytesOf(const std::vector<Piece>& pieces) {
  uint64_t bytes = 0;
  for (const Piece& piece : pieces) bytes += piece.extent.bytes;
  return bytes;
}

CUresult MapExtent(const Environment& environment, int device, CUdeviceptr address,
                   const Extent& extent) {
  const ipc::DriverTable& driver = *environment.driver;
  CUresult result = driver.cuMemMap(address, extent.bytes, 0, extent.handle, 0);
  if (result != CUDA_SUCCESS) return result;
  const CUmemAccessDesc access{.location = {CU_MEM_LOCATION_TYPE_DEVICE, {device}},
                               .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  result = driver.cuMemSetAccess(address, extent.bytes, &access, 1);
  if (result != CUDA_SUCCESS) {
    driver.cuMemUnmap(address, extent.bytes);
  } else if (environment.backed != nullptr) {
    environment.backed->Add(address, extent.bytes);
  }
  return result;
}

void Unmap(const Environment& environment, const Piece& piece) {
  if (environment.backed != nullptr) environment.backed->Remove(piece.address, piece.extent.bytes);
  environment.driver->cuMemUnmap(piece.address, piece.extent.bytes);
}

CUresult ClearPieces(const Environment& environment, int device, const std::vector<Piece>& pieces) {
  if (std::none_of(pieces.begin(), pieces.end(),
                   [](const Piece& piece) { return piece.extent.clear; })) {
    return CUDA_SUCCESS;
  }
  MemoryStream stream(environment, device);
  CUresult result = stream.status();
  for (const Piece& piece : pieces) {
    if (result == CUDA_SUCCESS && piece.extent.clear) {
      result = stream.Clear(piece.address, piece.extent.bytes);
    }
  }
  if (stream.status() != CUDA_SUCCESS) return result;
  const CUresult waited = stream.Wait();
  return result != CUDA_SUCCESS ? result : waited;
}

CUresult Back(const Environment& environment, ExtentRecord wanted, uint64_t bytes,
              uint64_t extent_bytes_max, std::vector<Piece>* pieces) {
  assert(bytes % ipc::limits::kExtentBytesMin == 0 && std::has_single_bit(extent_bytes_max));
  const int device = static_cast<int>(wanted.device);
  const uint64_t end = wanted.address + bytes;
  std::vector<Piece> made;
  CUresult result = CUDA_SUCCESS;
  for (; result == CUDA_SUCCESS && wanted.address < end; wanted.address += wanted.bytes) {
    Piece piece{wanted.address, {}};
    wanted.bytes = std::min<uint64_t>(std::bit_floor(end - wanted.address), extent_bytes_max);
    result = environment.extents->Create(wanted, &piece.extent);
    if (result != CUDA_SUCCESS) break;
    result = MapExtent(environment, device, piece.address, piece.extent);
    if (result == CUDA_SUCCESS) {
      made.push_back(piece);
    } else {
      environment.extents->Free(piece.extent);
    }
  }
  if (result == CUDA_SUCCESS) result = ClearPieces(environment, device, made);
  if (result != CUDA_SUCCESS) {
    FreePieces(environment, made);
    return result;
  }
  pieces->insert(pieces->end(), made.begin(), made.end());
  return CUDA_SUCCESS;
}

CUresult BackAgain(const Environment& environment, const std::vector<ExtentRecord>& records,
                   std::vector<Piece>* pieces) {
  std::vector<Piece> made;
  for (const ExtentRecord& record : records) {
    Piece piece{record.address, {}};
    CUresult result = environment.extents->Import(record, &piece.extent);
    if (result == CUDA_SUCCESS) {
      result = MapExtent(environment, static_cast<int>(record.device), piece.address, piece.extent);
      if (result != CUDA_SUCCESS) environment.extents->Drop(piece.extent);
    }
    if (result != CUDA_SUCCESS) {
      DropPieces(environment, made);
      return result;
    }
    made.push_back(piece);
  }
  pieces->insert(pieces->end(), made.begin(), made.end());
  return CUDA_SUCCESS;
}

void FreePieces(const Environment& environment, const std::vector<Piece>& pieces) {
  for (const Piece& piece : pieces) {
    Unmap(environment, piece);
    environment.extents->Free(piece.extent);
  }
}

void DropPieces(const Environment& environment, const std::vector<Piece>& pieces) {
  for (const Piece& piece : pieces) {
    Unmap(environment, piece);
    environment.extents->Drop(piece.extent);
  }
}

}  // namespace worker
