// liblaneway_prover.so: what a client that replays knows of kernels, loaded only when it replays.
#include "replay/run_prover.h"

extern "C" __attribute__((visibility("default"))) replay::RunProver* LanewayMakeRunProver() {
  return replay::MakeRunProver().release();
}

namespace {
[[maybe_unused]] replay::MakeProverFunction* const kSignatureHolds = &LanewayMakeRunProver;
}  // namespace
