// The client's codec: encodes a call straight into the room that the transport gave, takes its
// reply.
//
//   const void* values[] = {&stream, &event, &flags};               // by address, as the stub got
//   them std::span<std::byte> room = sender.Reserve(header + RequestBytesMax(row, values), ...);
//   const Encoded sent = EncodeRequest(op, values, caller, &writer);
//   if (sent.refusal != Refusal::kNone) return StatusOf(op, sent.refusal);     // nothing was
//   changed
//
// Thread safety: as the Caller's and the Writer's.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <tuple>

#include "ipc/caller.h"
#include "ipc/codec.h"
#include "ipc/signatures.h"

namespace ipc {

// Why a call was not sent; CUDA's codes for it are StatusOf's.
enum class Refusal : uint8_t {
  kNone,
  kBadHandle,
  kBadAddress,
  kBadValue,
  kTooManyHandles,
  kTooLong,  // does not fit into one message
  kNotSupported,
};

// The library's own status code (CUresult, cublasStatus_t) for a refusal.
uint32_t StatusOf(Library library, Refusal refusal);

inline constexpr size_t kNewHandlesMax = 2;

struct NewName {
  HandleKind kind = HandleKind::kNone;
  HandleId id = HandleId::kNull;
  void* value = nullptr;  // what the program will hold
  void** out = nullptr;   // where it wants it
};

struct Encoded {
  Refusal refusal = Refusal::kNone;
  bool results_on_host = false;  // a ResultSlot was taken: wait for it and copy
  uint8_t new_names = 0;
  std::array<NewName, kNewHandlesMax> names = {};
};

// An upper bound of the request body's size.
// REQUIRES here and below: RowOf(op).remote, and values[i] points at the C value of parameter i.
size_t RequestBytesMax(Op op, Values values);

// Encodes the request. Forgets the names that the call ends, and reserves names for the objects
// that the call creates. DeliverNames writes the new names to the program's variables: a queued
// call does so at once, for a round trip TakeReply does. On a refusal nothing has changed.
Encoded EncodeRequest(Op op, Values values, Caller& caller, Writer* request);

void DeliverNames(const Encoded& encoded);

// Takes the reply: fills the program's variables and returns the call's status; false when the
// reply is malformed. A failed call's new names are forgotten.
bool TakeReply(Op op, Values values, const Encoded& encoded, std::span<const std::byte> reply,
               Caller& caller, uint32_t* status);

// The same with the row's C types checked: Arguments<Op::StreamMark> args(stream, slot, sequence,
// 1).
template <Op op, class Signature = SignatureOf<op>>
class Arguments;
template <Op op, class R, class... A>
class Arguments<op, R(A...)> {
 public:
  explicit Arguments(A... args) : Arguments(std::index_sequence_for<A...>(), args...) {}
  Arguments(const Arguments&) = delete;
  Arguments& operator=(const Arguments&) = delete;
  Values values() const { return pointers_.data(); }

 private:
  template <size_t... i>
  Arguments(std::index_sequence<i...>, A... args)
      : args_(args...), pointers_{&std::get<i>(args_)...} {}

  std::tuple<A...> args_;
  std::array<const void*, sizeof...(A) + 1> pointers_;
};

}  // namespace ipc
