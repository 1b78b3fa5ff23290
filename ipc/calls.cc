#include "ipc/calls.h"

#include <array>
#include <cassert>
#include <string_view>
#include <unordered_map>

#include "base/find.h"

namespace ipc {

namespace internal {
extern const Row kDriverRows[];
extern const size_t kDriverRowCount;
extern const Row kCublasRows[];
extern const size_t kCublasRowCount;
extern const Row kCublasLtRows[];
extern const size_t kCublasLtRowCount;
extern const Row kLanewayRows[];
extern const size_t kLanewayRowCount;
}  // namespace internal

namespace {

// FNV-1a: the hash tells builds apart, it guards against nobody.
void Mix(std::string_view text, uint64_t* hash) {
  for (const char c : text) *hash = (*hash ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  *hash = (*hash ^ 0xff) * 0x100000001b3;
}

}  // namespace

std::span<const Row> RowsOf(Library library) {
  switch (library) {
    case Library::kDriver:
      return {internal::kDriverRows, internal::kDriverRowCount};
    case Library::kCublas:
      return {internal::kCublasRows, internal::kCublasRowCount};
    case Library::kCublasLt:
      return {internal::kCublasLtRows, internal::kCublasLtRowCount};
    case Library::kLaneway:
      return {internal::kLanewayRows, internal::kLanewayRowCount};
  }
  assert(false);
  return {};
}

const Row& RowOf(Op op) {
  const std::span<const Row> rows = RowsOf(LibraryOf(op));
  assert(IndexOf(op) < rows.size());
  return rows[IndexOf(op)];
}

std::optional<Op> OpFromUntrusted(uint16_t number) {
  if (number >> 12 >= kLibraries) return std::nullopt;
  const Op op = static_cast<Op>(number);
  if (IndexOf(op) >= RowsOf(LibraryOf(op)).size()) return std::nullopt;
  return op;
}

std::optional<Op> OpNamed(std::string_view name) {
  using Index = std::unordered_map<std::string_view, Op>;
  // Leaked: a program may look names up while it exits.
  static const Index& index = *[] {
    Index* made = new Index;
    for (size_t i = 0; i < kLibraries; ++i) {
      const Library library = static_cast<Library>(i);
      const std::span<const Row> rows = RowsOf(library);
      for (size_t j = 0; j < rows.size(); ++j) made->emplace(rows[j].name, OpAt(library, j));
    }
    return made;
  }();
  const Op* const found = base::FindOrNull(index, name);
  return found == nullptr ? std::nullopt : std::optional<Op>(*found);
}

std::string_view NameOf(Library library) {
  static constexpr std::array<std::string_view, kLibraries> kNames = {"driver", "cublas",
                                                                      "cublasLt", "laneway"};
  return kNames[static_cast<size_t>(library)];
}

std::string_view NameOf(Route route) {
  static constexpr std::array<std::string_view, 4> kNames = {"sync", "async", "local", "denied"};
  return kNames[static_cast<size_t>(route)];
}

uint64_t TableHash(Library library, size_t rows) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const Row& row : RowsOf(library)) {
    if (rows-- == 0) break;
    Mix(row.name, &hash);
    Mix(row.remote ? row.roles : "-", &hash);
  }
  return hash;
}

}  // namespace ipc
