#include "shim/send.h"

#include <atomic>
#include <vector>

#include "ipc/codec_client.h"
#include "shim/caller.h"
#include "shim/client.h"
#include "shim/rebuild/record.h"
#include "shim/say.h"

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

thread_local uint64_t captured_into = 0;

// A later build's calls, to a daemon of an earlier one.
bool Unknown(ipc::Op op) {
  if (ipc::Knows(Client::Process().welcome().tables, op)) [[likely]]
    return false;
  static std::atomic<bool> said;
  SayOnce(said, {"the daemon is older than this program's Laneway and has no ", ipc::RowOf(op).name,
                 "; run `laneway stop`, then start both from one installation"});
  return true;
}

}  // namespace

IntoCapture::IntoCapture(uint64_t piece) { captured_into = piece; }
IntoCapture::~IntoCapture() { captured_into = 0; }
uint64_t IntoCapture::piece() { return captured_into; }

uint32_t PostPrepared(ipc::Op op, uint32_t context, ipc::Values values, bool (*prepare)(void*),
                      void* argument) {
  if (Unknown(op)) return Refused(op, ipc::Refusal::kNotSupported);
  ipc::Encoded encoded;
  {
    Message message(Client::Process(), op, ipc::RequestBytesMax(op, values), context, values);
    if (message.result() != CUDA_SUCCESS) return Failed(op, message.result());
    if (prepare != nullptr && !prepare(argument)) return Refused(op, ipc::Refusal::kBadHandle);
    ipc::Writer writer(message.body());
    encoded = ipc::EncodeRequest(op, values, ClientCaller::Process(), &writer);
    if (encoded.refusal != ipc::Refusal::kNone) {
      if (prepare != nullptr) State::Process().UndoMark();
      return Refused(op, encoded.refusal);
    }
    if (IsRecorded(op)) message.Record(values, encoded);
    message.Send(writer.size());
  }
  ipc::DeliverNames(encoded);
  return 0;
}

uint32_t PostValues(ipc::Op op, uint32_t context, ipc::Values values) {
  return PostPrepared(op, context, values, nullptr, nullptr);
}

CUresult NoteUnsentValues(ipc::Op op, uint32_t context, ipc::Values values) {
  return Message(Client::Process(), op, 0, context, values).result();
}

uint32_t CallValues(ipc::Op op, uint32_t context, ipc::Values values) {
  if (Unknown(op)) return Refused(op, ipc::Refusal::kNotSupported);
  ipc::Caller& caller = ClientCaller::Process();
  const bool captured = captured_into != 0;
  if (captured) context |= ipc::kIntoCapture;
  Message message(Client::Process(), op, ipc::RequestBytesMax(op, values), context,
                  captured ? nullptr : values);
  if (message.result() != CUDA_SUCCESS) return Failed(op, message.result());
  ipc::Writer writer(message.body());
  const ipc::Encoded encoded = ipc::EncodeRequest(op, values, caller, &writer);
  if (encoded.refusal != ipc::Refusal::kNone) return Refused(op, encoded.refusal);
  if (captured || IsRecorded(op)) message.Record(values, encoded);
  std::vector<std::byte> reply;
  const CUresult result = message.Exchange(writer.size(), &reply);
  if (result != CUDA_SUCCESS) {
    for (size_t i = 0; i < encoded.new_names; ++i) {
      caller.Forget(encoded.names[i].kind, encoded.names[i].id);
    }
    return Failed(op, result);
  }
  uint32_t status = 0;
  if (!ipc::TakeReply(op, values, encoded, reply, caller, &status)) {
    ipc::MarkLost(Client::Process().file().page(), CUDA_ERROR_MPS_RPC_FAILURE,
                  "the worker's answer to a call makes no sense");
    return Failed(op, CUDA_ERROR_MPS_RPC_FAILURE);
  }
  if (message.token() != RebuildLog::kNoToken) {
    RebuildLog& log = *Client::Process().log();
    status == 0 ? log.Confirm(message.token()) : log.Drop(message.token());
  }
  return status;
}

}  // namespace shim
