// What comparing with Jinja cannot show: refusals, and bounds.
// tests/frameworks/chat_templates_equal.py compares.
#include "serve/llm/text/chat_template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace serve::llm {
namespace {

using ::testing::HasSubstr;

std::string RefusalOf(std::string_view text) {
  return std::string(ChatTemplate::ParseUntrusted(text).status().message());
}

absl::StatusOr<std::string> Rendered(std::string_view text, Conversation conversation = {}) {
  const absl::StatusOr<ChatTemplate> parsed = ChatTemplate::ParseUntrusted(text);
  if (!parsed.ok()) return parsed.status();
  return parsed->Render(conversation);
}

std::string Repeated(std::string_view text, int times) {
  std::string all;
  for (int each = 0; each < times; ++each) all += text;
  return all;
}

TEST(ChatTemplateTest, WhatIsNotSupportedIsRefusedByNameAndLine) {
  EXPECT_THAT(RefusalOf("a\n{% include 'x' %}"), HasSubstr("line 2: the tag {% include %}"));
  EXPECT_THAT(RefusalOf("{{ x | urlize }}"), HasSubstr("line 1: the filter 'urlize'"));
  EXPECT_THAT(RefusalOf("{{ x is escaped }}"), HasSubstr("the test 'escaped'"));
  EXPECT_THAT(RefusalOf("\n\n{{ x.format(1) }}"), HasSubstr("line 3: the method 'format'"));
  EXPECT_THAT(RefusalOf("{{ x.append(1) }}"), HasSubstr("changes a value"));
  EXPECT_THAT(RefusalOf("{{ x.__class__ }}"), HasSubstr("'__class__'"));
  EXPECT_THAT(RefusalOf("{{ f(*x) }}"), HasSubstr("'*'"));
  EXPECT_THAT(RefusalOf("{% for x in y recursive %}{% endfor %}"), HasSubstr("recursive"));
  EXPECT_THAT(RefusalOf("{% if x %}"), HasSubstr("{% endif %} is missing"));
  EXPECT_THAT(RefusalOf("{{ 99999999999999999999 }}"), HasSubstr("out of range"));
  EXPECT_THAT(RefusalOf("{{ '\\ud800' }}"), HasSubstr("makes no character"));
  EXPECT_THAT(RefusalOf("\xff"), HasSubstr("UTF-8"));
}

TEST(ChatTemplateTest, ATemplateOfAnyDepthIsRefusedBeforeItIsRead) {
  for (const std::string& deep :
       {Repeated("(", 9999) + "1" + Repeated(")", 9999), Repeated("[", 9999) + Repeated("]", 9999),
        Repeated("-", 50000) + "1", Repeated("not ", 50000) + "1", "1" + Repeated("+1", 50000),
        "x" + Repeated(".y", 50000), "x" + Repeated("|trim", 40000),
        Repeated("x if ", 40000) + "x"})
    EXPECT_THAT(RefusalOf("{{ " + deep + " }}"), HasSubstr("nests over")) << deep.substr(0, 10);
  EXPECT_THAT(RefusalOf(Repeated("{% if x %}", 20000)), HasSubstr("nests over"));
  EXPECT_THAT(RefusalOf(std::string(300 << 10, 'x')), HasSubstr("at most"));
}

TEST(ChatTemplateTest, WorkIsBounded) {
  for (
      const std::string_view endless :
      {"{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}",
       "{% set n = namespace(x='ab') %}{% for i in range(99) %}{% set n.x = n.x + n.x %}{% endfor "
       "%}",
       "{% set n = namespace(x=[]) %}{% for i in range(99) %}{% set n.x = [n.x, n.x] %}{% endfor "
       "%}",
       "{% set n = namespace(x=[]) %}{% for i in range(50) %}{% set n.x = [n.x, n.x] %}{% endfor %}"
       "{{ n.x }}",
       "{% set n = namespace(x=[]) %}{% for i in range(50) %}{% set n.x = [n.x, n.x] %}{% endfor %}"
       "{{ n.x | tojson }}",
       "{% set n = namespace(x=[]) %}{% for i in range(50) %}{% set n.x = [n.x, n.x] %}{% endfor %}"
       "{{ n.x == n.x[:] + [] }}",
       "{% macro f(n) %}{{ f(n + 1) }}{% endmacro %}{{ f(0) }}", "{{ 'a' * 999999999999 }}",
       "{% set x = 'a' * 9999999 %}{{ x.replace('', x) }}",
       "{% set x = 'a' * 9999999 %}{{ x.replace('a', x) }}", "{{ 'x' | indent(999999999) }}"}) {
    EXPECT_FALSE(Rendered(endless).ok()) << endless;
  }
}

TEST(ChatTemplateTest, TheTemplatesOwnSentenceIsTheError) {
  const absl::Status status = Rendered("{{ raise_exception('no ' + 'system') }}").status();
  EXPECT_EQ(status, absl::InvalidArgumentError("no system"));
  EXPECT_THAT(std::string(Rendered("\n{{ x.y }}").status().message()),
              HasSubstr("line 2: 'x' is undefined"));
}

TEST(ChatTemplateTest, ListsAreNotUnique) {
  EXPECT_EQ(*Rendered("{{ [2, 1, 2, (1, 2), (1, 2)] | unique | list }}"), "[2, 1, (1, 2)]");
  for (const char* const unhashable : {"[[1]]", "[{}]", "[(1, [2])]"}) {
    EXPECT_THAT(
        std::string(
            Rendered(std::string("{{ ") + unhashable + " | unique | list }}").status().message()),
        HasSubstr("'unique' takes no value of type"));
  }
}

// Python's callable() asks for a method __call__, which Jinja's undefined value has: it raises.
TEST(ChatTemplateTest, UndefinedValuesAreCallable) {
  EXPECT_EQ(*Rendered("{{ x is callable }} {{ (1 == 1)[7] is callable }} {{ none is callable }}"),
            "True True False");
}

TEST(ChatTemplateTest, MessagesAreChecked) {
  OrderedJson deep = "x";
  for (int level = 0; level < 100; ++level) deep = OrderedJson::array({deep});
  EXPECT_FALSE(Rendered("", {.messages = deep}).ok());
  EXPECT_FALSE(Rendered("", {.messages = {"\xff"}}).ok());
  EXPECT_FALSE(Rendered("", {.messages = {uint64_t{1} << 63}}).ok());
}

}  // namespace
}  // namespace serve::llm
