// The functions that call what the rows of ipc/calls/driver.inc name.
#include "ipc/calls/invokers.h"

namespace ipc::internal {

extern const Invoker kDriverInvokers[];
const Invoker kDriverInvokers[] = {
#define LANEWAY_INVOKER(fn) &FunctionInvoker<LANEWAY_SIGNATURE(fn)>::Invoke
#define CALL(fn, route, ...) LANEWAY_INVOKER_##route(fn __VA_OPT__(, ) __VA_ARGS__)
#include "ipc/calls/driver.inc"
#undef CALL
};

}  // namespace ipc::internal
