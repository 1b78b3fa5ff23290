#include "functions/npy.h"

#include <gtest/gtest.h>

namespace functions {
namespace {

Bytes BytesOfText(const std::string& text) {
  const std::byte* const from = reinterpret_cast<const std::byte*>(text.data());
  return Bytes(from, from + text.size());
}

Bytes File(const std::string& header, const std::string& data) {
  std::string text("\x93NUMPY\x01\x00", 8);
  text.push_back(static_cast<char>(header.size()));
  text.push_back('\0');
  return BytesOfText(text + header + data);
}

std::string WhyNoArray(const Bytes& file) {
  Array array;
  std::string why;
  return DecodeNpyUntrusted(file, &array, &why) ? "" : why;
}

TEST(NpyTest, WhatIsReadIsWhatWasWritten) {
  for (const std::vector<uint64_t>& shape :
       {std::vector<uint64_t>{}, std::vector<uint64_t>{2}, std::vector<uint64_t>{2, 3}}) {
    TensorType type{"", ElementType::kF32, shape};
    Bytes bytes(*BytesOf(type), std::byte{3});
    Array read;
    std::string why;
    ASSERT_TRUE(DecodeNpyUntrusted(EncodeNpy(type, bytes), &read, &why)) << why;
    EXPECT_EQ(read.type, type);
    EXPECT_EQ(read.bytes, bytes);
    EXPECT_EQ((EncodeNpy(type, {}).size()) % 64, 0u);
  }
}

TEST(NpyTest, NumPysOwnHeaderIsRead) {
  Array read;
  std::string why;
  ASSERT_TRUE(DecodeNpyUntrusted(
      File("{'descr': '<i2', 'fortran_order': False, 'shape': (2,), }\n", "abcd"), &read, &why));
  EXPECT_EQ(read.type.type, ElementType::kI16);
  EXPECT_EQ(read.type.shape, std::vector<uint64_t>{2});
}

TEST(NpyTest, OtherFilesAreRefused) {
  EXPECT_NE(WhyNoArray(BytesOfText("no array at all")), "");
  EXPECT_NE(WhyNoArray(File("{'descr': '>i2', 'fortran_order': False, 'shape': (2,), }", "abcd")),
            "");
  EXPECT_NE(WhyNoArray(File("{'descr': '<i2', 'fortran_order': True, 'shape': (2,), }", "abcd")),
            "");
  EXPECT_NE(WhyNoArray(File("{'descr': '<i2', 'fortran_order': False, 'shape': (3,), }", "abcd")),
            "");
  EXPECT_NE(WhyNoArray(File("{'descr': '<i2', 'fortran_order': False, 'shape': (x,), }", "abcd")),
            "");
  EXPECT_NE(WhyNoArray(File("{'descr': 'O', 'fortran_order': False, 'shape': (2,), }", "abcd")),
            "");
}

}  // namespace
}  // namespace functions
