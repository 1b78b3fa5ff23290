// Tables of functions that succeed and do nothing (ipc/driver_table.h).
#include "ipc/driver_table.h"

namespace ipc {

namespace {

template <class Signature>
struct Nothing;
template <class R, class... A>
struct Nothing<R(A...)> {
  static R Succeed(A...) { return R(); }
};

}  // namespace

const DriverTable& NullDriver() {
#define CALL(fn, ...) .fn = &Nothing<LANEWAY_SIGNATURE(fn)>::Succeed,
  static constexpr DriverTable kTable = {
#include "ipc/calls/driver.inc"
  };
  return kTable;
}

const CublasTable& NullCublas() {
  static constexpr CublasTable kTable = {
#include "ipc/calls/cublas.inc"
  };
  return kTable;
}

const CublasLtTable& NullCublasLt() {
  static constexpr CublasLtTable kTable = {
#include "ipc/calls/cublaslt.inc"
  };
#undef CALL
  return kTable;
}

}  // namespace ipc
