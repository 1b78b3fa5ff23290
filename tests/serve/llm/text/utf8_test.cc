#include "serve/llm/text/utf8.h"

#include <gtest/gtest.h>

namespace serve::llm {
namespace {

TEST(Utf8Test, EachCodePointHasOneCharacter) {
  for (uint32_t code_point = 0; code_point <= 0x10ffff; ++code_point) {
    if (code_point >= 0xd800 && code_point < 0xe000) continue;
    const std::string character = CharacterOf(code_point);
    ASSERT_EQ(CharacterBytes(character + "a"), character.size());
    ASSERT_EQ(CodePointOf(character), code_point);
    ASSERT_EQ(CharacterBytes(std::string_view(character).substr(0, character.size() - 1)), 0u);
  }
}

TEST(Utf8Test, TextIsWholeCharacters) {
  EXPECT_TRUE(IsUtf8(""));
  EXPECT_TRUE(IsUtf8("a\u00e9\u4e2d\U0001F600"));
  for (const char* const broken : {"\x80", "a\xc3", "\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80"})
    EXPECT_FALSE(IsUtf8(broken)) << broken;
}

}  // namespace
}  // namespace serve::llm
