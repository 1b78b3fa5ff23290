// The call tables as data: opcodes, and one Row per call of the driver, cuBLAS, cublasLt and
// Laneway.
//
// Everything that is known about a call is written once, in ipc/calls/*.inc; this header,
// signatures.h, driver_table.h and the codec are readings of it. Each table has opcodes of its own
// (append only), so a new row shifts no other table's. This header is light: it includes no vendor
// header. Thread safety: constant data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace ipc {

enum class Op : uint16_t {
#define CALL(fn, ...) fn,
#include "ipc/calls/driver.inc"
  kDriverEnd,
  kCublasBefore = 0x0fff,
#include "ipc/calls/cublas.inc"
  kCublasEnd,
  kCublasLtBefore = 0x1fff,
#include "ipc/calls/cublaslt.inc"
  kCublasLtEnd,
  kLanewayBefore = 0x2fff,
#include "ipc/calls/laneway.inc"
  kLanewayEnd,
#undef CALL
};
static_assert(static_cast<unsigned>(Op::kDriverEnd) <= 0x1000 &&
              static_cast<unsigned>(Op::kCublasEnd) <= 0x2000 &&
              static_cast<unsigned>(Op::kCublasLtEnd) <= 0x3000);

// kSync:  a round trip. kAsync: queued; it returns at once.
// kLocal: an ordinary function of the shim; with roles it has a wire form, too, and may forward
// itself. kDeny:  the documented "not supported" error, logged once with the row's reason.
enum class Route : uint8_t { kSync, kAsync, kLocal, kDeny };

enum class Library : uint8_t { kDriver, kCublas, kCublasLt, kLaneway };
inline constexpr size_t kLibraries = 4;

struct Param;  // ipc/roles.h

// Which parameters need what, a bit each: most calls have none to look at.
struct ParamSets {
  uint32_t ranges = 0;    // sends bytes after the fixed part
  uint32_t resolved = 0;  // asks the session, or needs room
  uint32_t returned = 0;  // comes back in the reply
  uint32_t names = 0;     // creates or destroys an object
  uint32_t scalars = 0;   // depends on a library's pointer mode
};

struct Row {
  std::string_view name;  // the exported symbol
  Route route = Route::kDeny;
  bool remote = false;            // has a wire form: the worker serves it
  bool per_thread = false;        // _ptsz, _ptds: a null stream means the thread's own
  std::string_view reason;        // of kDeny: true whenever it is shown
  std::string_view roles;         // as written
  std::span<const Param> params;  // empty unless remote
  ParamSets sets;
};

constexpr Library LibraryOf(Op op) { return static_cast<Library>(static_cast<uint16_t>(op) >> 12); }
constexpr uint16_t IndexOf(Op op) { return static_cast<uint16_t>(op) & 0xfff; }
constexpr Op OpAt(Library library, size_t index) {
  return static_cast<Op>(static_cast<size_t>(library) << 12 | index);
}

// All rows of a library, in the order of their opcodes.
std::span<const Row> RowsOf(Library library);
// REQUIRES: op is an opcode of this build.
const Row& RowOf(Op op);
// The opcode of a number from elsewhere; nothing when this build has no such row.
std::optional<Op> OpFromUntrusted(uint16_t number);
// The row of an exported symbol.
std::optional<Op> OpNamed(std::string_view name);

std::string_view NameOf(Library library);
std::string_view NameOf(Route route);

// A hash over names and roles of the first `rows` rows (all of them when there are fewer). Two
// builds understand each other when it agrees, per library, over the rows that both have.
uint64_t TableHash(Library library, size_t rows);

}  // namespace ipc
