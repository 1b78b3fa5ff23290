// The rows of ipc/calls/laneway.inc.
#include "ipc/calls/laneway_params.h"

#define LANEWAY_TYPE(fn) laneway::fn

namespace ipc::internal {

extern const Row kLanewayRows[];
extern const size_t kLanewayRowCount;
const Row kLanewayRows[] = {
#define CALL(fn, route, ...) LANEWAY_ROW_##route(fn __VA_OPT__(, ) __VA_ARGS__)
#include "ipc/calls/laneway.inc"
#undef CALL
};
const size_t kLanewayRowCount = std::size(kLanewayRows);

}  // namespace ipc::internal
