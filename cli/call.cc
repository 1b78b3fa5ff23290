#include "cli/call.h"

#include <cstdio>
#include <cstring>
#include <optional>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "functions/manifest.h"
#include "functions/npy.h"
#include "functions/serving/frames.h"
#include "functions/serving/stream_socket.h"
#include "functions/store.h"
#include "ipc/calls/limits.h"
#include "ipc/state_dir.h"

namespace cli {
namespace {

using functions::Answer;
using functions::AnswerStatus;
using functions::Array;
using functions::Bytes;
using functions::Manifest;
using functions::TensorType;

constexpr size_t kPrintedMax = 64;  // elements of an output

// "NAME=FILE", or the file of the only tensor.
struct Assignment {
  std::string name, path;
};

absl::StatusOr<Assignment> AssignmentOf(const std::string& text,
                                        const std::vector<TensorType>& tensors, const char* what) {
  const size_t equals = text.find('=');
  const std::string name = equals == std::string::npos ? "" : text.substr(0, equals);
  for (const TensorType& tensor : tensors) {
    if (tensor.name == name) return Assignment{name, text.substr(equals + 1)};
  }
  if (tensors.size() == 1) return Assignment{tensors[0].name, text};
  return absl::InvalidArgumentError(absl::StrCat(
      "--", what, " ", text, " names no ", what,
      " of the function; write NAME=FILE with a name that laneway record --show lists"));
}

// One request, one answer. What an answer's tensors view lies in `body`.
absl::StatusOr<Answer> Exchange(int socket, const functions::Request& request, Bytes* body) {
  functions::FrameReader reader;
  Answer answer;
  if (!functions::WriteAll(socket, functions::EncodeRequest(request)) ||
      !functions::ReadFrame(socket, &reader, body) ||
      !functions::DecodeAnswerUntrusted(*body, &answer))
    return absl::UnavailableError("the server has ended; start it again with laneway serve");
  if (answer.status != AnswerStatus::kDone) return absl::FailedPreconditionError(answer.sentence);
  return answer;
}

absl::StatusOr<Manifest> Describe(int socket) {
  Bytes body;
  const absl::StatusOr<Answer> answer =
      Exchange(socket, {functions::RequestKind::kDescribe, {}}, &body);
  if (!answer.ok()) return answer.status();
  Manifest manifest;
  std::string why = "is missing";
  const std::span<const std::byte> text =
      answer->tensors.empty() ? std::span<const std::byte>() : answer->tensors[0].bytes;
  if (!functions::ParseManifestUntrusted({reinterpret_cast<const char*>(text.data()), text.size()},
                                         &manifest, &why))
    return absl::InternalError(absl::StrCat("the server's manifest ", why));
  return manifest;
}

absl::StatusOr<Array> ReadArray(const Assignment& input) {
  const absl::StatusOr<std::string> file =
      ipc::ReadBounded(input.path, ipc::limits::kFunctionPortBytesMax + (1u << 20));
  if (absl::IsNotFound(file.status()))
    return absl::NotFoundError(absl::StrCat("there is no file ", input.path));
  if (!file.ok()) return file.status();
  Array array;
  std::string why;
  if (!functions::DecodeNpyUntrusted(std::as_bytes(std::span(*file)), &array, &why))
    return absl::InvalidArgumentError(absl::StrCat(input.path, " ", why));
  array.type.name = input.name;
  return array;
}

template <class T>
double Element(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return static_cast<double>(value);
}

std::string ElementText(functions::ElementType type, const std::byte* at) {
  using functions::ElementType;
  char text[64];
  switch (type) {
    case ElementType::kF32:
      std::snprintf(text, sizeof text, "%.9g", Element<float>(at));
      return text;
    case ElementType::kF64:
      std::snprintf(text, sizeof text, "%.17g", Element<double>(at));
      return text;
    case ElementType::kF16: {
      uint16_t bits = 0;
      std::memcpy(&bits, at, sizeof bits);
      std::snprintf(text, sizeof text, "0x%04x", bits);
      return text;
    }
    case ElementType::kI8:
      return absl::StrCat(static_cast<int>(static_cast<int8_t>(*at)));
    case ElementType::kU8:
    case ElementType::kBool:
      return absl::StrCat(static_cast<unsigned>(*at));
    default:
      break;
  }
  uint64_t bits = 0;
  const size_t bytes = functions::FactsOf(type).bytes;
  std::memcpy(&bits, at, bytes);
  const bool is_signed =
      type == ElementType::kI16 || type == ElementType::kI32 || type == ElementType::kI64;
  if (!is_signed) return absl::StrCat(bits);
  const unsigned shift = static_cast<unsigned>(64 - 8 * bytes);
  return absl::StrCat(static_cast<int64_t>(bits << shift) >> shift);
}

void Print(const functions::TensorView& tensor) {
  std::string line = absl::StrCat(tensor.type.name, " ", functions::TextOf(tensor.type), ":");
  const size_t bytes = functions::FactsOf(tensor.type.type).bytes;
  const size_t count = tensor.bytes.size() / bytes;
  for (size_t i = 0; i < count && i < kPrintedMax; ++i)
    absl::StrAppend(&line, " ", ElementText(tensor.type.type, tensor.bytes.data() + i * bytes));
  if (count > kPrintedMax) absl::StrAppend(&line, " ... (--output writes all of it)");
  std::printf("%s\n", line.c_str());
}

absl::Status Deliver(const Answer& answer, const std::vector<Assignment>& outputs) {
  for (const functions::TensorView& tensor : answer.tensors) {
    if (outputs.empty()) Print(tensor);
    for (const Assignment& output : outputs) {
      if (output.name != tensor.type.name) continue;
      const Bytes file = functions::EncodeNpy(tensor.type, tensor.bytes);
      const absl::Status written =
          ipc::WriteWhole(output.path, {reinterpret_cast<const char*>(file.data()), file.size()});
      if (!written.ok()) return written;
    }
  }
  return absl::OkStatus();
}

absl::Status CallOnce(const Request& request, int socket) {
  const absl::StatusOr<Manifest> manifest = Describe(socket);
  if (!manifest.ok()) return manifest.status();
  std::vector<Array> arrays;
  for (const std::string& text : request.function.inputs) {
    const absl::StatusOr<Assignment> input = AssignmentOf(text, manifest->inputs, "input");
    if (!input.ok()) return input.status();
    absl::StatusOr<Array> array = ReadArray(*input);
    if (!array.ok()) return array.status();
    arrays.push_back(*std::move(array));
  }
  std::vector<Assignment> outputs;
  for (const std::string& text : request.function.outputs) {
    const absl::StatusOr<Assignment> output = AssignmentOf(text, manifest->outputs, "output");
    if (!output.ok()) return output.status();
    outputs.push_back(*output);
  }
  functions::Request call;
  for (const Array& array : arrays) call.tensors.push_back({array.type, array.bytes});
  Bytes body;
  const absl::StatusOr<Answer> answer = Exchange(socket, call, &body);
  return answer.ok() ? Deliver(*answer, outputs) : answer.status();
}

}  // namespace

int CallFunction(const Request& request) {
  if (const absl::Status fine = functions::CheckName(request.name); !fine.ok())
    return Say(2, std::string(fine.message()));
  const absl::StatusOr<ipc::UniqueFd> socket =
      functions::Connect(functions::SocketPath(DirOf(request), request.name));
  if (absl::IsNotFound(socket.status()))
    return Say(1, absl::StrCat(request.name, " is not served; laneway serve ", request.name,
                               " starts it"));
  const absl::Status done = socket.ok() ? CallOnce(request, socket->get()) : socket.status();
  return done.ok() ? 0 : Say(1, std::string(done.message()));
}

}  // namespace cli
