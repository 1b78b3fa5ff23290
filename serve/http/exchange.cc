#include "serve/http/exchange.h"

#include <microhttpd.h>
#include <sys/socket.h>

#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>

namespace serve::http {
namespace {

constexpr size_t kBlockBytes = 16 << 10;

ssize_t ReadStream(void* exchange, uint64_t, char* room, size_t room_bytes) {
  return static_cast<Exchange*>(exchange)->Read(room, room_bytes);
}

}  // namespace

void Exchange::Reply(Answer answer) {
  assert(stage_ == Stage::kOpen);
  stage_ = Stage::kReplied;
  answer_ = std::move(answer);
  Resume();
}

void Exchange::BeginStream() {
  assert(stage_ == Stage::kOpen);
  stage_ = Stage::kStreams;
  answer_.type = kEventStreamType;
  answer_.headers = {{"cache-control", "no-cache"}};
  Resume();
}

void Exchange::Send(std::string_view bytes) {
  assert(stage_ == Stage::kStreams);
  if (connection_ == nullptr || lost_) return;
  if (unread_.size() - taken_ + bytes.size() > unread_bytes_max_) {
    // The server sees the end of the socket in its next run, as if the client had left.
    (void)shutdown(socket_, SHUT_RDWR);
    return;
  }
  if (taken_ > unread_.size() / 2) unread_.erase(0, std::exchange(taken_, 0));
  unread_ += bytes;
  Resume();
}

void Exchange::End() {
  assert(stage_ == Stage::kStreams);
  stage_ = Stage::kEnded;
  Resume();
}

void Exchange::Suspend() {
  suspended_ = true;
  MHD_suspend_connection(connection_);
}

void Exchange::Resume() {
  if (connection_ != nullptr && std::exchange(suspended_, false))
    MHD_resume_connection(connection_);
}

void Exchange::TellGone() {
  const std::function<void()> gone = std::exchange(gone_, nullptr);
  if (gone != nullptr && (stage_ == Stage::kOpen || stage_ == Stage::kStreams)) gone();
}

void Exchange::Lose() {
  lost_ = true;
  (void)shutdown(socket_, SHUT_RDWR);
  Resume();
  TellGone();
}

void Exchange::Detach() {
  connection_ = nullptr;
  TellGone();
}

bool Exchange::QueueAnswer() {
  if (lost_) return false;
  MHD_Response* response = nullptr;
  if (stage_ == Stage::kReplied) {
    response = MHD_create_response_from_buffer(answer_.body.size(), answer_.body.data(),
                                               MHD_RESPMEM_MUST_COPY);
  } else {
    response = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, kBlockBytes, &ReadStream, this,
                                                 nullptr);
  }
  return response != nullptr && Queue(response, answer_);
}

bool Exchange::Queue(MHD_Response* response, const Answer& answer) {
  MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, answer.type.c_str());
  MHD_add_response_header(response, "x-request-id", request_.id.c_str());
  for (const auto& [name, value] : answer.headers)
    MHD_add_response_header(response, name.c_str(), value.c_str());
  const MHD_Result queued =
      MHD_queue_response(connection_, static_cast<unsigned>(answer.status), response);
  MHD_destroy_response(response);
  return queued == MHD_YES;
}

ssize_t Exchange::Read(char* room, size_t room_bytes) {
  if (lost_) return MHD_CONTENT_READER_END_WITH_ERROR;
  const size_t bytes = std::min(room_bytes, unread_.size() - taken_);
  if (bytes == 0 && stage_ == Stage::kEnded) return MHD_CONTENT_READER_END_OF_STREAM;
  // A reader that has nothing would be asked again and again.
  if (bytes == 0) Suspend();
  std::memcpy(room, unread_.data() + taken_, bytes);
  taken_ += bytes;
  return static_cast<ssize_t>(bytes);
}

}  // namespace serve::http
