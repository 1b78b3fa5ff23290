// Sending one call through the codec: checked C types in, a CUresult out.
//
//     Post<Op::StreamMark>(stream->wire, stream_value, mark)     queued; refusals come back at once
//     Call<Op::ArenaMap>(context->wire, address, bytes)           a round trip
//
// Handles in arguments are what the program holds. Streams other than the legacy one are already
// resolved (Streams::Use). What must be decided in the order of the ring (sequence numbers)
// goes into PostWith's `prepare`, which runs under the send lock just before the arguments are
// encoded. How a call gets into the ring: shim/pipeline.h. REQUIRES: Client::Ready(). Thread
// safety: any thread.
#pragma once

#include "ipc/calls/vendor.h"

#include <cstdint>
#include <type_traits>

#include "ipc/codec_client.h"
#include "shim/streams.h"

namespace shim {

// Both return the status of the call's own library.
uint32_t PostValues(ipc::Op op, uint32_t context, ipc::Values values);
uint32_t CallValues(ipc::Op op, uint32_t context, ipc::Values values);

// A library's call that the worker captures into `piece` (Op::GraphCapture). The log keeps it as a
// part of that; it is no work.
uint32_t CallIntoCapture(ipc::Op op, uint32_t context, ipc::Values values, uint64_t piece);

// As PostValues, after prepare(argument) under the send lock. False: a handle is gone, and nothing
// was changed.
uint32_t PostPrepared(ipc::Op op, uint32_t context, ipc::Values values, bool (*prepare)(void*),
                      void* argument);

// As PostValues, for a call that its caller has made.
uint32_t PostOutgoing(Outgoing* call);
// As PostValues, for a message that the pipeline has learned (Pipeline::SendKnown).
uint32_t PostKnown(ipc::Op op, uint32_t context, const KnownMessage& message,
                   KnownMessage::WriteEnd write_end, void* argument);

template <ipc::Op op, class... A>
CUresult Post(uint32_t context, A... args) {
  const ipc::Arguments<op> arguments(args...);
  return static_cast<CUresult>(PostValues(op, context, arguments.values()));
}

template <ipc::Op op, class... A>
CUresult Call(uint32_t context, A... args) {
  const ipc::Arguments<op> arguments(args...);
  return static_cast<CUresult>(CallValues(op, context, arguments.values()));
}

// For calls that carry a mark: the arguments are variables of the caller, of the call's exact C
// types, and prepare() may change them. One that returns a bool may refuse.
template <ipc::Op op, class Prepare, class... A>
CUresult PostWith(uint32_t context, Prepare prepare, A&... args) {
  static_assert(std::is_same_v<CUresult(std::remove_const_t<A>...), ipc::SignatureOf<op>>);
  const void* const values[] = {&args...};
  const auto call = [](void* argument) {
    Prepare& prepared = *static_cast<Prepare*>(argument);
    if constexpr (std::is_same_v<decltype(prepared()), bool>) {
      return prepared();
    } else {
      prepared();
      return true;
    }
  };
  return static_cast<CUresult>(PostPrepared(op, context, values, call, &prepare));
}

// As if a call had been sent whose effect is here already: iterations are found in what the program
// does, whatever of it is sent.
CUresult NoteUnsentValues(ipc::Op op, uint32_t context, ipc::Values values);

template <ipc::Op op, class... A>
CUresult NoteUnsent(uint32_t context, A... args) {
  const ipc::Arguments<op> arguments(args...);
  return NoteUnsentValues(op, context, arguments.values());
}

// While one lives, the next object that a call of this thread creates gets this value: its table
// entry was made beforehand.
class GivenName {
 public:
  explicit GivenName(uint64_t value);
  ~GivenName();
  GivenName(const GivenName&) = delete;
};

}  // namespace shim
