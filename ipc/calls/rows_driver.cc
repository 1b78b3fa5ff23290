// The rows of ipc/calls/driver.inc.
#define LANEWAY_TYPE(fn) LANEWAY_SIGNATURE(fn)
#include "ipc/calls/rows.h"
#include "ipc/calls/vendor.h"

namespace ipc {
namespace roles::params {
#define CALL(fn, route, ...) LANEWAY_PARAMS_##route(fn __VA_OPT__(, ) __VA_ARGS__)
#include "ipc/calls/driver.inc"
#undef CALL
}  // namespace roles::params

namespace internal {
extern const Row kDriverRows[];
extern const size_t kDriverRowCount;
const Row kDriverRows[] = {
#define CALL(fn, route, ...) LANEWAY_ROW_##route(fn __VA_OPT__(, ) __VA_ARGS__)
#include "ipc/calls/driver.inc"
#undef CALL
};
const size_t kDriverRowCount = std::size(kDriverRows);

}  // namespace internal
}  // namespace ipc
