#include "ipc/driver_table.h"

#include <dlfcn.h>

#include <cassert>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace ipc {

namespace {

void* PointerAt(const void* table, size_t index) {
  void* function = nullptr;
  if (table == nullptr) return function;
  std::memcpy(&function, static_cast<const char*>(table) + index * sizeof function,
              sizeof function);
  return function;
}

absl::Status Load(Library library, const std::string& path, void* table) {
  void* loaded = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (loaded == nullptr) {
    return absl::NotFoundError(absl::StrCat("can't load ", path, ": ", dlerror()));
  }
  size_t index = 0;
  for (const Row& row : RowsOf(library)) {
    void* function = dlsym(loaded, row.name.data());  // rows are literals: NUL-terminated
    std::memcpy(static_cast<char*>(table) + index++ * sizeof function, &function, sizeof function);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status LoadDriver(const std::string& path, DriverTable* table) {
  assert(sizeof *table == RowsOf(Library::kDriver).size() * sizeof(void*));
  return Load(Library::kDriver, path, table);
}

absl::Status LoadCublas(const std::string& path, CublasTable* table) {
  assert(sizeof *table == RowsOf(Library::kCublas).size() * sizeof(void*));
  return Load(Library::kCublas, path, table);
}

absl::Status LoadCublasLt(const std::string& path, CublasLtTable* table) {
  assert(sizeof *table == RowsOf(Library::kCublasLt).size() * sizeof(void*));
  return Load(Library::kCublasLt, path, table);
}

void* FunctionAt(const Targets& targets, Op op) {
  switch (LibraryOf(op)) {
    case Library::kDriver:
      return PointerAt(targets.driver, IndexOf(op));
    case Library::kCublas:
      return PointerAt(targets.cublas, IndexOf(op));
    case Library::kCublasLt:
      return PointerAt(targets.cublaslt, IndexOf(op));
    case Library::kLaneway:
      break;
  }
  assert(false);
  return nullptr;
}

}  // namespace ipc
