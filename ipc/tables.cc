#include "ipc/tables.h"

#include <algorithm>

namespace ipc {
namespace {

uint32_t RowsHere(size_t library) {
  return static_cast<uint32_t>(RowsOf(static_cast<Library>(library)).size());
}

}  // namespace

Tables OwnTables() {
  Tables tables;
  for (size_t i = 0; i < kLibraries; ++i) {
    tables.rows[i] = RowsHere(i);
    tables.hash[i] = TableHash(static_cast<Library>(i), tables.rows[i]);
  }
  return tables;
}

bool Understands(const Tables& peer) {
  for (size_t i = 0; i < kLibraries; ++i) {
    if (peer.rows[i] > RowsHere(i)) continue;
    if (TableHash(static_cast<Library>(i), peer.rows[i]) != peer.hash[i]) return false;
  }
  return true;
}

bool Serves(const Tables& peer) {
  for (size_t i = 0; i < kLibraries; ++i) {
    if (peer.rows[i] > RowsHere(i)) return false;
  }
  return Understands(peer);
}

Tables CommonTables(const Tables& peer) {
  Tables tables;
  for (size_t i = 0; i < kLibraries; ++i) {
    tables.rows[i] = std::min(peer.rows[i], RowsHere(i));
    tables.hash[i] = TableHash(static_cast<Library>(i), tables.rows[i]);
  }
  return tables;
}

}  // namespace ipc
