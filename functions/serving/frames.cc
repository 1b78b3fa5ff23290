#include "functions/serving/frames.h"

#include <cstring>
#include <utility>

#include "ipc/calls/limits.h"

namespace functions {
namespace {

class FrameOut {
 public:
  FrameOut() { Put<uint32_t>(0); }
  void Raw(const void* data, size_t bytes) {
    const std::byte* const from = static_cast<const std::byte*>(data);
    bytes_.insert(bytes_.end(), from, from + bytes);
  }
  template <class T>
  void Put(T value) {
    Raw(&value, sizeof value);
  }
  void Head(uint8_t first) { Put<uint32_t>(first); }
  void Tensors(const std::vector<TensorView>& tensors) {
    Put(static_cast<uint32_t>(tensors.size()));
    for (const TensorView& tensor : tensors) {
      Put(static_cast<uint16_t>(tensor.type.name.size()));
      Put(static_cast<uint8_t>(tensor.type.type));
      Put(static_cast<uint8_t>(tensor.type.shape.size()));
      Put<uint32_t>(0);
      for (const uint64_t side : tensor.type.shape) Put(side);
      Put<uint64_t>(tensor.bytes.size());
      Raw(tensor.type.name.data(), tensor.type.name.size());
      Raw(tensor.bytes.data(), tensor.bytes.size());
    }
  }
  Bytes Take() {
    const uint32_t bytes = static_cast<uint32_t>(bytes_.size() - sizeof(uint32_t));
    std::memcpy(bytes_.data(), &bytes, sizeof bytes);
    return std::move(bytes_);
  }

 private:
  Bytes bytes_;
};

class FrameIn {
 public:
  explicit FrameIn(std::span<const std::byte> in) : in_(in) {}
  template <class T>
  T Get() {
    T value = {};
    const std::span<const std::byte> bytes = View(sizeof value);
    if (ok_) std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  }
  std::span<const std::byte> View(uint64_t bytes) {
    ok_ = ok_ && bytes <= in_.size();
    if (!ok_) return {};
    const std::span<const std::byte> view = in_.first(bytes);
    in_ = in_.subspan(bytes);
    return view;
  }
  bool Tensors(std::vector<TensorView>* tensors) {
    const uint32_t count = Get<uint32_t>();
    if (count > ipc::limits::kFunctionPortsMax) return false;
    for (uint32_t i = 0; i < count && ok_; ++i) {
      if (!Tensor(&tensors->emplace_back())) return false;
    }
    return ok_ && in_.empty();
  }
  bool ok() const { return ok_; }
  bool done() const { return ok_ && in_.empty(); }

 private:
  bool Tensor(TensorView* tensor) {
    const uint16_t name = Get<uint16_t>();
    const uint8_t type = Get<uint8_t>();
    const uint8_t rank = Get<uint8_t>();
    const uint32_t zero = Get<uint32_t>();
    if (!ok_ || type >= kElementTypes || rank > kTensorRankMax || zero != 0) return false;
    tensor->type.type = static_cast<ElementType>(type);
    for (uint8_t i = 0; i < rank; ++i) tensor->type.shape.push_back(Get<uint64_t>());
    const uint64_t bytes = Get<uint64_t>();
    const std::span<const std::byte> text = View(name);
    tensor->type.name.assign(reinterpret_cast<const char*>(text.data()), text.size());
    tensor->bytes = View(bytes);
    return ok_ && BytesOf(tensor->type) == bytes;
  }

  std::span<const std::byte> in_;
  bool ok_ = true;
};

}  // namespace

Bytes EncodeRequest(const Request& request) {
  FrameOut out;
  out.Head(static_cast<uint8_t>(request.kind));
  out.Tensors(request.tensors);
  return out.Take();
}

Bytes EncodeAnswer(const Answer& answer) {
  FrameOut out;
  out.Head(static_cast<uint8_t>(answer.status));
  if (answer.status == AnswerStatus::kDone) {
    out.Tensors(answer.tensors);
  } else {
    out.Raw(answer.sentence.data(), answer.sentence.size());
  }
  return out.Take();
}

bool DecodeRequestUntrusted(std::span<const std::byte> body, Request* request) {
  FrameIn in(body);
  const uint32_t kind = in.Get<uint32_t>();
  if (kind != static_cast<uint32_t>(RequestKind::kCall) &&
      kind != static_cast<uint32_t>(RequestKind::kDescribe))
    return false;
  Request read;
  read.kind = static_cast<RequestKind>(kind);
  if (!in.Tensors(&read.tensors)) return false;
  *request = std::move(read);
  return true;
}

bool DecodeAnswerUntrusted(std::span<const std::byte> body, Answer* answer) {
  FrameIn in(body);
  const uint32_t status = in.Get<uint32_t>();
  if (!in.ok() || status > static_cast<uint32_t>(AnswerStatus::kFailed)) return false;
  Answer read;
  read.status = static_cast<AnswerStatus>(status);
  if (read.status == AnswerStatus::kDone) {
    if (!in.Tensors(&read.tensors)) return false;
  } else {
    const std::span<const std::byte> text = in.View(body.size() - sizeof status);
    read.sentence.assign(reinterpret_cast<const char*>(text.data()), text.size());
  }
  *answer = std::move(read);
  return true;
}

bool FrameReader::AddUntrusted(std::span<const std::byte> bytes) {
  buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
  uint32_t announced = 0;
  if (buffer_.size() < sizeof announced) return true;
  std::memcpy(&announced, buffer_.data(), sizeof announced);
  return announced <= ipc::limits::kFunctionFrameBytesMax;
}

bool FrameReader::Peek(std::span<const std::byte>* body) const {
  uint32_t bytes = 0;
  if (buffer_.size() < sizeof bytes) return false;
  std::memcpy(&bytes, buffer_.data(), sizeof bytes);
  if (buffer_.size() - sizeof bytes < bytes) return false;
  *body = std::span(buffer_).subspan(sizeof bytes, bytes);
  return true;
}

Bytes FrameReader::Take() {
  std::span<const std::byte> body;
  (void)Peek(&body);
  const ptrdiff_t end = static_cast<ptrdiff_t>(sizeof(uint32_t) + body.size());
  Bytes frame(buffer_.begin(), buffer_.begin() + end);
  buffer_.erase(buffer_.begin(), buffer_.begin() + end);
  return frame;
}

}  // namespace functions
