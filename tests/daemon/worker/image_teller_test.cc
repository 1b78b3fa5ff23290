#include "daemon/worker/image_teller.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "ipc/call_trace.h"
#include "ipc/module_hash.h"
#include "tests/daemon/worker/image_track.h"

namespace worker {
namespace {

struct Part {
  ipc::ImageHead head;
  std::string bytes;
};

class ImageTellerTest : public ::testing::Test {
 protected:
  ipc::ModuleHash Load(uintptr_t module, const std::string& text) {
    const std::span<const std::byte> bytes = std::as_bytes(std::span(text));
    const ipc::ModuleHash hash = SharedModuleCache().AddMade(bytes);
    images_.Add(reinterpret_cast<CUmodule>(module), hash);
    return hash;
  }
  std::vector<Part> Taken() {
    teller_.Tell();
    std::vector<Part> parts;
    track_.TakeAll(ipc::TraceKind::kImage, [&parts](std::span<const std::byte> bytes) {
      Part& part = parts.emplace_back();
      std::memcpy(static_cast<void*>(&part.head), bytes.data(), sizeof part.head);
      part.bytes = std::string(reinterpret_cast<const char*>(bytes.data()) + sizeof part.head,
                               bytes.size() - sizeof part.head);
    });
    return parts;
  }

  ImageTrack track_;
  LoadedImages images_;
  ImageTeller teller_{&images_};
};

TEST_F(ImageTellerTest, EachImageIsToldOnceThenThatAllWere) {
  teller_.Begin(track_.Writer());
  const ipc::ModuleHash first = Load(1, "one"), second = Load(2, "another");
  Load(3, "one");  // again
  std::vector<Part> parts = Taken();
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_TRUE(parts[0].head.image == first);
  EXPECT_EQ(parts[0].bytes, "one");
  EXPECT_TRUE(parts[1].head.image == second);
  EXPECT_EQ(parts[1].head.total_bytes, 7u);
  EXPECT_TRUE(parts[2].head.image == ipc::ModuleHash{});
  EXPECT_TRUE(Taken().empty());
  Load(4, "later");
  parts = Taken();
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[0].bytes, "later");
  teller_.Begin(track_.Writer());
  EXPECT_EQ(Taken().size(), 4u) << "another trace is told of all";
}

TEST_F(ImageTellerTest, AnImageThatIsLargerThanTheTrackComesInParts) {
  teller_.Begin(track_.Writer());
  std::string image(3 * ipc::kTraceRingBytes, '\0');
  for (size_t i = 0; i < image.size(); ++i) image[i] = static_cast<char>(i * 2654435761u >> 13);
  Load(1, image);
  std::string told;
  size_t rounds = 0;
  for (std::vector<Part> parts = Taken(); !parts.empty(); parts = Taken()) {
    ++rounds;
    for (const Part& part : parts) {
      if (part.head.total_bytes == 0) continue;
      EXPECT_EQ(part.head.offset, told.size());
      told += part.bytes;
    }
  }
  EXPECT_GT(rounds, 2u);
  EXPECT_TRUE(told == image);
}

TEST_F(ImageTellerTest, AnImageThatIsGoneOrTooLargeHasNoBytes) {
  teller_.Begin(track_.Writer());
  images_.Add(reinterpret_cast<CUmodule>(1), ipc::ModuleHash{{1, 2, 3, 4}});
  Load(2, std::string(ImageTeller::kImageBytesMax + 1, 'x'));
  const std::vector<Part> parts = Taken();
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_EQ(parts[0].head.total_bytes, 0u);
  EXPECT_EQ(parts[1].head.total_bytes, ImageTeller::kImageBytesMax + 1);
  EXPECT_TRUE(parts[1].bytes.empty());
  images_.Remove(reinterpret_cast<CUmodule>(1));
  EXPECT_EQ(images_.loads().size(), 1u);
}

}  // namespace
}  // namespace worker
