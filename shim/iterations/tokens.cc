#include "shim/iterations/tokens.h"

#include "ipc/calls/vendor.h"

#include <cstring>

#include "ipc/calls/limits.h"
#include "ipc/roles.h"

namespace shim::iterations {
namespace {

enum class Class : uint8_t {
  kOther,
  kCompute,
  kFill,
  kLaunch,
  kGraph,
  kCopy,
  kStagedIn,
  kStagedOut
};

// From any thread and before the destructors of statics: never destroyed.
struct Classes {
  Class of[ipc::kLibraries][0x1000] = {};
};

Class ClassOf(const ipc::Row& row, ipc::Library library) {
  const std::string_view name = row.name;
  if (!row.remote) return Class::kOther;
  if (library == ipc::Library::kLaneway) {
    if (name == "Launch") return Class::kLaunch;
    if (name == "GraphLaunch") return Class::kGraph;
    if (name == "CopyStagedIn") return Class::kStagedIn;
    if (name == "CopyStagedOut") return Class::kStagedOut;
    return name.starts_with("Copy") ? Class::kCopy : Class::kOther;
  }
  if (library == ipc::Library::kDriver) {
    if (name.starts_with("cuLaunch") || name.starts_with("cuGraphLaunch")) return Class::kCompute;
    return name.starts_with("cuMemset") || name.starts_with("cuMemcpy") ? Class::kFill
                                                                        : Class::kOther;
  }
  for (const char* const word : {"Create", "Destroy", "Set", "Get", "Init"}) {
    if (name.find(word) != std::string_view::npos) return Class::kOther;
  }
  return Class::kCompute;
}

const Classes& AllClasses() {
  static const Classes* const classes = [] {
    Classes* const made = new Classes;
    for (size_t i = 0; i < ipc::kLibraries; ++i) {
      const ipc::Library library = static_cast<ipc::Library>(i);
      const std::span<const ipc::Row> rows = ipc::RowsOf(library);
      for (size_t row = 0; row < rows.size(); ++row) made->of[i][row] = ClassOf(rows[row], library);
    }
    return made;
  }();
  return *classes;
}

uint64_t Mixed(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15;
  return hash ^ hash >> 29;
}

uint32_t Folded(uint64_t hash) { return static_cast<uint32_t>(hash ^ hash >> 32); }

template <class T>
T ValueAt(ipc::Values values, size_t index) {
  T value;
  std::memcpy(&value, values[index], sizeof value);
  return value;
}

uint64_t SizesOf(const ipc::Row& row, ipc::Values values) {
  uint64_t hash = 1;
  for (size_t i = 0; i < row.params.size(); ++i) {
    const ipc::Param& param = row.params[i];
    if (param.role.kind != ipc::RoleKind::kValue || param.role.rule == ipc::LengthRule::kParam ||
        param.bytes > sizeof(uint64_t)) {
      continue;  // a staging offset or a mark, if it is a value at all
    }
    hash = Mixed(hash, static_cast<uint64_t>(ipc::IntegerOf(param, values[i])));
  }
  return hash;
}

// Where an address lies, not which it is.
bool IsPinned(uint64_t address) {
  return (address - ipc::limits::kSlotBase) % ipc::limits::kSlotBytes >=
         ipc::limits::kDeviceArenaBytes;
}

// Where the last piece of a staged copy ended: the next piece begins there.
struct Continuation {
  ipc::Op op = ipc::Op::kDriverEnd;
  uint64_t address = 0;
};
Continuation continuation;  // under the send lock

bool Continues(ipc::Op op, uint64_t address, uint64_t bytes) {
  const bool continues = continuation.op == op && continuation.address == address;
  continuation = {op, address + bytes};
  return continues;
}

uint32_t IdentityOf(uint64_t what) { return Folded(Mixed(what, 0x1a5e)); }

// A graph made anew takes the name of the last one.
uint64_t Named(ipc::Op op, uint64_t name) { return Mixed(static_cast<uint64_t>(op), name); }

}  // namespace

uint32_t IdentityOfLaunch(uint64_t function) {
  return IdentityOf(Named(ipc::Op::Launch, function));
}
uint32_t IdentityOfGraph(uint64_t graph) {
  return IdentityOf(Named(ipc::Op::GraphLaunch, static_cast<uint32_t>(graph)));
}

void OnKnownOperation() { continuation = {}; }

std::optional<Op> TokenOf(ipc::Op op, ipc::Values values) {
  const Class kind = AllClasses().of[static_cast<size_t>(ipc::LibraryOf(op))][ipc::IndexOf(op)];
  if (kind == Class::kOther) return std::nullopt;
  const ipc::Op before = continuation.op;
  if (kind != Class::kStagedIn && kind != Class::kStagedOut) continuation = {};
  Op token;
  uint64_t identity = static_cast<uint64_t>(op), shape = 1;
  switch (kind) {
    case Class::kLaunch:
      identity = Named(op, ValueAt<uint64_t>(values, 0));
      for (size_t i = 1; i < 8; ++i) shape = Mixed(shape, ValueAt<unsigned>(values, i));
      token.computes = true;
      break;
    case Class::kGraph:
      identity = Named(op, ValueAt<uint32_t>(values, 0));
      token.computes = true;
      break;
    case Class::kStagedIn:
      shape = ValueAt<uint64_t>(values, 2);
      if (Continues(op, ValueAt<uint64_t>(values, 0), shape) && before == op) return std::nullopt;
      identity = static_cast<uint64_t>(ipc::Op::CopyInline);  // the size decides which it is
      break;
    case Class::kStagedOut:
      shape = ValueAt<uint64_t>(values, 2);
      if (Continues(op, ValueAt<uint64_t>(values, 1), shape) && before == op) return std::nullopt;
      break;
    case Class::kCompute:
      token.computes = true;
      shape = SizesOf(ipc::RowOf(op), values);
      break;
    case Class::kCopy:
      if (op == ipc::Op::CopyDevice) {
        identity = Mixed(identity, (IsPinned(ValueAt<uint64_t>(values, 0)) ? 1 : 0) +
                                       (IsPinned(ValueAt<uint64_t>(values, 1)) ? 2 : 0));
      }
      shape = SizesOf(ipc::RowOf(op), values);
      break;
    case Class::kFill:
      shape = SizesOf(ipc::RowOf(op), values);
      break;
    case Class::kOther:
      break;
  }
  token.identity = IdentityOf(identity);
  token.shape = Folded(Mixed(shape, static_cast<uint64_t>(op)));
  return token;
}

}  // namespace shim::iterations
