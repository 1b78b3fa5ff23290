#include "ipc/dispatch.h"

#include <optional>

namespace ipc {

namespace internal {
// One entry per row, in opcode order; null for rows without a wire form.
extern const Invoker kDriverInvokers[];
extern const Invoker kCublasInvokers[];
extern const Invoker kCublasLtInvokers[];
extern const Invoker kLanewayInvokers[];
}  // namespace internal

namespace {

Invoker InvokerOf(Op op) {
  switch (LibraryOf(op)) {
    case Library::kDriver:
      return internal::kDriverInvokers[IndexOf(op)];
    case Library::kCublas:
      return internal::kCublasInvokers[IndexOf(op)];
    case Library::kCublasLt:
      return internal::kCublasLtInvokers[IndexOf(op)];
    case Library::kLaneway:
      return internal::kLanewayInvokers[IndexOf(op)];
  }
  return nullptr;
}

}  // namespace

Served DispatchUntrusted(uint16_t number, std::span<const std::byte> request,
                         const Targets& targets, Session& session, Writer* reply) {
  const std::optional<Op> op = OpFromUntrusted(number);
  if (!op.has_value() || !RowOf(*op).remote) return {Outcome::kMalformed};
  void* target = LibraryOf(*op) == Library::kLaneway ? static_cast<void*>(targets.laneway)
                                                     : FunctionAt(targets, *op);
  return ServeUntrusted(*op, request, InvokerOf(*op), target, session, reply);
}

}  // namespace ipc
