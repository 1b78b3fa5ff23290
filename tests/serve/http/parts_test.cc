// The server's parts that need no socket.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "serve/http/api_keys.h"
#include "serve/http/event_stream.h"
#include "serve/http/listener.h"
#include "serve/http/router.h"

namespace serve::http {
namespace {

using testing::HasSubstr;

TEST(RouterTest, ExactPathsComeFirstAndMethodsAreNamed) {
  Router router;
  std::string seen;
  const auto action = [&seen](const char* name) {
    return [&seen, name](const Request&, std::string_view rest, const std::shared_ptr<Responder>&) {
      seen = std::string(name) + ":" + std::string(rest);
    };
  };
  router.Add("GET", "/a/*", action("prefix"));
  router.Add("GET", "/a/b", action("exact"));
  router.Add("POST", "/a/b", action("post"));
  const auto call = [&](const char* path) {
    (*router.Find("GET", path).action)({}, router.Find("GET", path).rest, nullptr);
    return seen;
  };
  EXPECT_EQ(call("/a/b"), "exact:");
  EXPECT_EQ(call("/a/b/c"), "prefix:b/c");
  EXPECT_EQ(router.Find("GET", "/a/").action, nullptr);
  EXPECT_EQ(router.Find("GET", "/a/").allowed, "");
  EXPECT_EQ(router.Find("PUT", "/a/b").allowed, "GET, POST");
}

TEST(ApiKeysTest, AdmitsItsKeysAlone) {
  const absl::StatusOr<ApiKeys> keys = ApiKeys::OfTextUntrusted("# comment\r\n one \n\ntwo");
  ASSERT_TRUE(keys.ok());
  EXPECT_TRUE(keys->Admits("Bearer one"));
  EXPECT_TRUE(keys->Admits("bearer two"));
  for (const char* wrong :
       {"", "one", "Bearer", "Bearer ", "Bearer on", "Bearer onee", "Basic one"})
    EXPECT_FALSE(keys->Admits(wrong)) << wrong;
  EXPECT_TRUE(ApiKeys().Admits(""));
}

TEST(ApiKeysTest, RefusesFilesThatAreNoKeys) {
  for (const std::string& text : {std::string(), std::string("# only\n"), std::string("a b"),
                                  std::string("\x80"), std::string(70'000, 'a')})
    EXPECT_FALSE(ApiKeys::OfTextUntrusted(text).ok());
  char path[] = "/tmp/laneway-keys-XXXXXX";
  close(mkstemp(path));
  std::ofstream(path) << "key\n";
  EXPECT_TRUE(ApiKeys::OfFile(path).ok());
  chmod(path, 0640);
  EXPECT_THAT(ApiKeys::OfFile(path).status().message(), HasSubstr("chmod 600"));
  unlink(path);
  EXPECT_FALSE(ApiKeys::OfFile(path).ok());
  EXPECT_FALSE(ApiKeys::OfFile("/tmp").ok());
}

TEST(EventStreamTest, EachLineIsAField) {
  EXPECT_EQ(EventOf("{}"), "data: {}\n\n");
  EXPECT_EQ(EventOf("a\nb\r\nc\rd"), "data: a\ndata: b\ndata: c\ndata: d\n\n");
}

TEST(ListenerTest, TheNetworkNeedsAKey) {
  EXPECT_THAT(Listen("0.0.0.0", 0, false).status().message(), HasSubstr("no key"));
  EXPECT_THAT(Listen("::", 0, false).status().message(), HasSubstr("no key"));
  EXPECT_TRUE(Listen("0.0.0.0", 0, true).ok());
  EXPECT_FALSE(Listen("example.org", 0, true).ok());
  const absl::StatusOr<Listener> first = Listen("localhost", 0, false);
  ASSERT_TRUE(first.ok());
  EXPECT_TRUE(first->is_loopback);
  EXPECT_FALSE(Listen("127.0.0.1", first->port, false).ok());
}

TEST(ListenerTest, KnowsPagesOfThisMachine) {
  for (const char* host : {"localhost", "LOCALHOST:80", "127.0.0.1:1", "[::1]", "[::1]:8"})
    EXPECT_TRUE(IsThisMachine(host)) << host;
  for (const char* host : {"", "localhost.evil", "127.0.0.1.evil:80", "::1:", "[::2]"})
    EXPECT_FALSE(IsThisMachine(host)) << host;
  EXPECT_TRUE(IsOriginOfThisMachine(""));
  EXPECT_TRUE(IsOriginOfThisMachine("http://localhost:3000"));
  EXPECT_FALSE(IsOriginOfThisMachine("null"));
  EXPECT_FALSE(IsOriginOfThisMachine("https://evil.example"));
}

}  // namespace
}  // namespace serve::http
