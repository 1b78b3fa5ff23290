#include "daemon/worker/work_ops.h"

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "ipc/roles.h"

namespace worker {
namespace {

constexpr WorkException kExceptions[] = {
    {"ArenaUnmap", false, "gives up the session's own memory, after all work submitted so far"},
    {"FetchAhead", false, "copies nothing unless it is the session's turn"},
    {"GraphCopy", false, "defines a node; GraphLaunch is the work"},
    {"GraphFill", false, "defines a node; GraphLaunch is the work"},
    {"LaneDrop", false, "forgets a block of the session's own; memory goes at a boundary"},
    {"PinnedFree", false, "pinned memory is the session's own"},
    {"cublasLtMatmulDescSetAttribute", false, "notes an address for later calls"},
    {"cublasSetWorkspace_v2", false, "notes an address for later calls"},
    {"CopyArrayStaged", true, "an array is memory of the device"},
    {"CopyArrays", true, "arrays are memory of the device"},
    {"GraphLaunch", true, "the addresses are in the nodes"},
    {"HostCall", true, "the program's function may use what work before it has made"},
    {"Launch", true, "the addresses are in the block of parameters"},
};

bool IsDeviceAddress(const ipc::Param& param) {
  switch (param.role.kind) {
    case ipc::RoleKind::kDevicePtr:
    case ipc::RoleKind::kLtAttribute:
    case ipc::RoleKind::kResult:
    case ipc::RoleKind::kScalar:
      return true;
    default:
      return false;
  }
}

bool IsWorkRow(const ipc::Row& row) {
  for (const WorkException& exception : kExceptions) {
    if (exception.name == row.name) return exception.is_work;
  }
  return NamesDeviceMemory(row);
}

std::vector<bool> WorkOf(ipc::Library library) {
  std::vector<bool> work;
  for (const ipc::Row& row : ipc::RowsOf(library)) work.push_back(IsWorkRow(row));
  return work;
}

using Table = std::array<std::vector<bool>, ipc::kLibraries>;

const Table& WorkTable() {
  static const Table* const table =
      new Table{WorkOf(ipc::Library::kDriver), WorkOf(ipc::Library::kCublas),
                WorkOf(ipc::Library::kCublasLt), WorkOf(ipc::Library::kLaneway)};
  return *table;
}

}  // namespace

std::span<const WorkException> WorkExceptions() { return kExceptions; }

bool NamesDeviceMemory(const ipc::Row& row) {
  return row.remote && std::any_of(row.params.begin(), row.params.end(), IsDeviceAddress);
}

bool IsWorkUntrusted(uint16_t number) {
  const std::optional<ipc::Op> op = ipc::OpFromUntrusted(number);
  if (!op.has_value()) return false;
  return WorkTable()[static_cast<size_t>(ipc::LibraryOf(*op))][ipc::IndexOf(*op)];
}

bool IsLibraryCallUntrusted(uint16_t number) {
  const std::optional<ipc::Op> op = ipc::OpFromUntrusted(number);
  if (!op.has_value()) return false;
  const ipc::Library library = ipc::LibraryOf(*op);
  return library == ipc::Library::kCublas || library == ipc::Library::kCublasLt;
}

}  // namespace worker
