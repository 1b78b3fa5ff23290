// The door for addresses: what a call may name, what of it must be there, and what follows when it
// is not.
#include "daemon/worker/graph_piece.h"
#include "daemon/worker/session_impl.h"

namespace worker {

bool SessionImpl::Accepts(uint64_t address, uint64_t bytes) {
  if (serves_work_) return addresses_.Backs(address, bytes);
  // It may be on the host now, or another's turn: what touches it later asks then.
  if (!addresses_.Owns(address, bytes)) return false;
  named_.push_back({address, bytes});
  return true;
}

void SessionImpl::LoseForAddress(const std::string& sentence) {
  Lose(sentence.c_str(), CUDA_ERROR_ILLEGAL_ADDRESS);
}

void SessionImpl::NoteTouched(CUgraphExec piece) {
  if (piece == nullptr) return;
  for (const AddressSpan& span : named_) GraphPiece::Of(piece)->touched().Add(span);
}

}  // namespace worker
