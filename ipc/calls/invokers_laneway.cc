// The functions that call what the rows of ipc/calls/laneway.inc name.
#include "ipc/calls/invokers.h"

namespace ipc::internal {

extern const Invoker kLanewayInvokers[];
const Invoker kLanewayInvokers[] = {
#define LANEWAY_INVOKER(fn) &MethodInvoker<&LanewayCalls::fn>::Invoke
#define CALL(fn, route, ...) LANEWAY_INVOKER_##route(fn __VA_OPT__(, ) __VA_ARGS__)
#include "ipc/calls/laneway.inc"
#undef CALL
};

}  // namespace ipc::internal
