#include "shim/send.h"

#include <atomic>
#include <vector>

#include "ipc/codec_client.h"
#include "shim/client.h"
#include "shim/handle_resolver.h"
#include "shim/pipeline.h"
#include "shim/stderr_once.h"
#include "shim/streams.h"

namespace shim {
namespace {

uint32_t Refused(ipc::Op op, ipc::Refusal refusal) {
  return ipc::StatusOf(ipc::LibraryOf(op), refusal);
}

// A session's failure in the codes of the call's library.
uint32_t Failed(ipc::Op op, CUresult result) {
  const ipc::Library library = ipc::LibraryOf(op);
  if (library == ipc::Library::kDriver || library == ipc::Library::kLaneway) return result;
  return CUBLAS_STATUS_EXECUTION_FAILED;
}

// A later build's calls, to a daemon of an earlier one.
bool Unknown(ipc::Op op) {
  if (ipc::Knows(Client::Process().connection().welcome.tables, op)) [[likely]]
    return false;
  static std::atomic<bool> said;
  StderrOnce(said,
             {"the daemon is older than this program's Laneway and has no ", ipc::RowOf(op).name,
              "; run `laneway stop`, then start both from one installation"});
  return true;
}

// REQUIRES: Pipeline::Send returned false.
uint32_t WhyUnsent(const Outgoing& call) {
  return call.failure != CUDA_SUCCESS ? Failed(call.op, call.failure)
                                      : Refused(call.op, call.encoded.refusal);
}

// Waits for the reply and takes its body.
CUresult TakeBody(PendingReply* pending, std::vector<std::byte>* body) {
  Replies& replies = Client::Process().replies();
  const CUresult result = replies.Wait(pending);
  replies.Forget(pending);
  if (result != CUDA_SUCCESS) return result;
  *body = std::move(pending->bytes);
  body->erase(body->begin(), body->begin() + sizeof(ipc::MessageHeader));
  return CUDA_SUCCESS;
}

uint32_t RoundTrip(Outgoing* call) {
  if (Unknown(call->op)) return Refused(call->op, ipc::Refusal::kNotSupported);
  ipc::Caller& caller = HandleResolver::Process();
  PendingReply pending;
  call->reply = &pending;
  call->wants_reply = true;
  if (!Client::Process().pipeline().Send(call)) return WhyUnsent(*call);
  const ipc::Encoded& encoded = call->encoded;
  std::vector<std::byte> reply;
  if (const CUresult result = TakeBody(&pending, &reply); result != CUDA_SUCCESS) {
    for (size_t i = 0; i < encoded.new_names; ++i) {
      caller.Forget(encoded.names[i].kind, encoded.names[i].id);
    }
    return Failed(call->op, result);
  }
  uint32_t status = 0;
  if (!ipc::TakeReply(call->op, call->values, encoded, reply, caller, &status)) {
    ipc::MarkLost(Client::Process().file().page(), CUDA_ERROR_MPS_RPC_FAILURE,
                  "the worker's answer to a call makes no sense");
    return Failed(call->op, CUDA_ERROR_MPS_RPC_FAILURE);
  }
  if (call->token != RebuildLog::kNoToken) {
    RebuildLog& log = *Client::Process().log();
    status == 0 ? log.Confirm(call->token) : log.Drop(call->token);
  }
  return status;
}

}  // namespace

uint32_t PostOutgoing(Outgoing* call) {
  if (Unknown(call->op)) return Refused(call->op, ipc::Refusal::kNotSupported);
  if (!Client::Process().pipeline().Send(call)) return WhyUnsent(*call);
  ipc::DeliverNames(call->encoded);
  return 0;
}

uint32_t PostKnown(ipc::Op op, uint32_t context, const KnownMessage& message,
                   KnownMessage::WriteEnd write_end, void* argument) {
  const CUresult sent =
      Client::Process().pipeline().SendKnown(op, context, message, write_end, argument);
  return sent == CUDA_SUCCESS ? 0 : Failed(op, sent);
}

uint32_t PostPrepared(ipc::Op op, uint32_t context, ipc::Values values, bool (*prepare)(void*),
                      void* argument) {
  Outgoing call(op, context, values);
  if (prepare != nullptr) call.prepare = {prepare, argument, [] { Streams::Process().UndoMark(); }};
  return PostOutgoing(&call);
}

uint32_t PostValues(ipc::Op op, uint32_t context, ipc::Values values) {
  return PostPrepared(op, context, values, nullptr, nullptr);
}

CUresult NoteUnsentValues(ipc::Op op, uint32_t context, ipc::Values values) {
  Outgoing call(op, context, values);
  return Client::Process().pipeline().Note(&call);
}

uint32_t CallValues(ipc::Op op, uint32_t context, ipc::Values values) {
  Outgoing call(op, context, values);
  return RoundTrip(&call);
}

uint32_t CallIntoCapture(ipc::Op op, uint32_t context, ipc::Values values, uint64_t piece) {
  Outgoing call(op, context | ipc::kIntoCapture, values);
  call.capture = piece;
  return RoundTrip(&call);
}

}  // namespace shim
