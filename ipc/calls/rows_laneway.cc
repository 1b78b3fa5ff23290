// The rows of ipc/calls/laneway.inc.
#define LANEWAY_TYPE(fn) laneway::fn
#include "ipc/calls/laneway_calls.h"
#include "ipc/calls/rows.h"

namespace ipc {
namespace roles::params {
#define CALL(fn, route, ...) LANEWAY_PARAMS_##route(fn __VA_OPT__(, ) __VA_ARGS__)
#include "ipc/calls/laneway.inc"
#undef CALL
}  // namespace roles::params

namespace internal {
extern const Row kLanewayRows[];
extern const size_t kLanewayRowCount;
const Row kLanewayRows[] = {
#define CALL(fn, route, ...) LANEWAY_ROW_##route(fn __VA_OPT__(, ) __VA_ARGS__)
#include "ipc/calls/laneway.inc"
#undef CALL
};
const size_t kLanewayRowCount = std::size(kLanewayRows);

}  // namespace internal
}  // namespace ipc
