// The rows of ipc/calls/cublaslt.inc.
#define LANEWAY_TYPE(fn) LANEWAY_SIGNATURE(fn)
#include "ipc/calls/rows.h"
#include "ipc/calls/vendor.h"

namespace ipc {
namespace roles::params {
#define CALL(fn, route, ...) LANEWAY_PARAMS_##route(fn __VA_OPT__(, ) __VA_ARGS__)
#include "ipc/calls/cublaslt.inc"
#undef CALL
}  // namespace roles::params

namespace internal {
extern const Row kCublasLtRows[];
extern const size_t kCublasLtRowCount;
const Row kCublasLtRows[] = {
#define CALL(fn, route, ...) LANEWAY_ROW_##route(fn __VA_OPT__(, ) __VA_ARGS__)
#include "ipc/calls/cublaslt.inc"
#undef CALL
};
const size_t kCublasLtRowCount = std::size(kCublasLtRows);

}  // namespace internal
}  // namespace ipc
