// Writes the images of a session's modules into its trace in detail (ipc/work_records.h), each
// once, in parts, whenever there is room, and after the last one that all were told. An image that
// the worker does not keep any more is told as one of no bytes.
//
// Thread safety: one session's thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "daemon/worker/loaded_images.h"
#include "daemon/worker/modules.h"
#include "ipc/call_trace.h"
#include "ipc/work_records.h"

namespace worker {

class ImageTeller {
 public:
  // Of images over this size nothing but the size is told.
  static constexpr uint64_t kImageBytesMax = 64u << 20;

  // `images` outlives this object.
  explicit ImageTeller(const LoadedImages* images) : images_(*images) {}

  // Another trace has begun, whose images go here.
  void Begin(const ipc::TraceWriter& writer);
  // Writes what there is room for.
  void Tell();

 private:
  // The next image that was not told. False: there is none.
  bool Next();
  // The next part of the image under way. False: there is no room.
  bool WritePart();
  bool Write(const ipc::ImageHead& head, std::span<const std::byte> part);

  const LoadedImages& images_;
  ipc::TraceWriter writer_;
  std::vector<ipc::ModuleHash> begun_;  // in this trace; the last one is under way
  bool under_way_ = false;
  bool said_all_ = false;  // since the last image
  ModuleImage image_;      // under way; null: it is not kept
  uint64_t offset_ = 0;    // of its next part
};

}  // namespace worker
