// The rows of ipc/calls/cublas.inc.
#define LANEWAY_TYPE(fn) LANEWAY_SIGNATURE(fn)
#include "ipc/calls/rows.h"
#include "ipc/calls/vendor.h"

namespace ipc {
namespace roles::params {
#define CALL(fn, route, ...) LANEWAY_PARAMS_##route(fn __VA_OPT__(, ) __VA_ARGS__)
#include "ipc/calls/cublas.inc"
#undef CALL
}  // namespace roles::params

namespace internal {
extern const Row kCublasRows[];
extern const size_t kCublasRowCount;
const Row kCublasRows[] = {
#define CALL(fn, route, ...) LANEWAY_ROW_##route(fn __VA_OPT__(, ) __VA_ARGS__)
#include "ipc/calls/cublas.inc"
#undef CALL
};
const size_t kCublasRowCount = std::size(kCublasRows);

}  // namespace internal
}  // namespace ipc
