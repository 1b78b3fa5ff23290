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

// An invoker of a laneway call takes the parts, and reads them alone.
void* TargetOf(const Targets& targets, Op op) {
  if (LibraryOf(op) != Library::kLaneway) return FunctionAt(targets, op);
  return targets.laneway.empty() ? nullptr : const_cast<LanewayParts*>(&targets.laneway);
}

}  // namespace

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

Served DispatchUntrusted(uint16_t number, std::span<const std::byte> request,
                         const Targets& targets, Session& session, Writer* reply) {
  const std::optional<Op> op = OpFromUntrusted(number);
  if (!op.has_value() || !RowOf(*op).remote) return {Outcome::kMalformed};
  void* const target = TargetOf(targets, *op);
  return ServeUntrusted(*op, request, InvokerOf(*op), target, session, reply);
}

}  // namespace ipc
