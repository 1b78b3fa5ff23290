// What programs call to say where an iteration begins (include/laneway.h), and what
// liblaneway_nvtx.so calls. C symbols of liblaneway_client.so.
#include "shim/iterations/iterations.h"

extern "C" {

__attribute__((visibility("default"))) void laneway_iteration() {
  shim::iterations::Iterations::Process().Mark(ipc::BoundarySource::kHeader);
}

__attribute__((visibility("default"))) void laneway_nvtx_range() {
  shim::iterations::Iterations::Process().Mark(ipc::BoundarySource::kNvtx);
}

}  // extern "C"
