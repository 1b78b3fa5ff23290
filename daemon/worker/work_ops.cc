#include "daemon/worker/work_ops.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "ipc/calls.h"

namespace worker {
namespace {

using Names = std::initializer_list<std::string_view>;

bool BeginsWithOneOf(std::string_view name, Names prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [name](std::string_view prefix) { return name.starts_with(prefix); });
}

bool IsWorkRow(ipc::Library library, const ipc::Row& row) {
  if (!row.remote) return false;
  switch (library) {
    case ipc::Library::kDriver:
      return BeginsWithOneOf(row.name, {"cuMemset", "cuMemcpy", "cuLaunch", "cuGraphLaunch"});
    case ipc::Library::kCublas:
      return !BeginsWithOneOf(row.name,
                              {"cublasCreate", "cublasDestroy", "cublasSet", "cublasGet"});
    case ipc::Library::kCublasLt:
      return row.name == "cublasLtMatmul" || row.name == "cublasLtMatrixTransform";
    case ipc::Library::kLaneway:
      return BeginsWithOneOf(row.name, {"Copy", "Launch", "HostCall", "GraphLaunch"});
  }
  return false;
}

std::vector<bool> WorkOf(ipc::Library library) {
  std::vector<bool> work;
  for (const ipc::Row& row : ipc::RowsOf(library)) work.push_back(IsWorkRow(library, row));
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
