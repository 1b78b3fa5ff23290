#include "daemon/worker/image_teller.h"

#include <algorithm>
#include <cstring>

namespace worker {

void ImageTeller::Begin(const ipc::TraceWriter& writer) {
  writer_ = writer;
  begun_.clear();
  under_way_ = false;
  said_all_ = false;
  image_ = nullptr;
}

void ImageTeller::Tell() {
  while (under_way_ || Next()) {
    if (!WritePart()) return;
  }
  if (!said_all_) said_all_ = Write({}, {});
}

bool ImageTeller::Write(const ipc::ImageHead& head, std::span<const std::byte> part) {
  std::vector<std::byte> bytes(sizeof head + part.size());
  std::memcpy(bytes.data(), &head, sizeof head);
  if (!part.empty()) std::memcpy(bytes.data() + sizeof head, part.data(), part.size());
  ipc::TraceEvent event;
  event.kind = ipc::TraceKind::kImage;
  return writer_.AddRecord(event, bytes);
}

bool ImageTeller::Next() {
  for (const LoadedImages::Load& load : images_.loads()) {
    if (std::find(begun_.begin(), begun_.end(), load.second) != begun_.end()) continue;
    begun_.push_back(load.second);
    image_ = SharedModuleCache().Find(load.second);
    offset_ = 0;
    under_way_ = true;
    said_all_ = false;
    return true;
  }
  return false;
}

// The cache keeps a zero beyond the image's end.
bool ImageTeller::WritePart() {
  const uint64_t total = image_ == nullptr ? 0 : image_->size() - 1;
  const uint64_t end = total > kImageBytesMax ? 0 : total;
  const size_t part =
      static_cast<size_t>(std::min<uint64_t>(end - offset_, ipc::kImagePartBytesMax));
  const ipc::ImageHead head{.image = begun_.back(), .total_bytes = total, .offset = offset_};
  const std::span<const std::byte> bytes =
      image_ == nullptr ? std::span<const std::byte>() : std::span(*image_);
  if (!Write(head, bytes.empty() ? bytes : bytes.subspan(offset_, part))) return false;
  offset_ += part;
  if (offset_ < end) return true;
  under_way_ = false;
  image_ = nullptr;
  return true;
}

}  // namespace worker
