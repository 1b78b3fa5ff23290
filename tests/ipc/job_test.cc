#include "ipc/job.h"

#include <gtest/gtest.h>

namespace ipc {
namespace {

JobTicket SomeTicket() {
  JobTicket ticket;
  ticket.terms = {.number = 12, .id = 0xfedcba9876543210, .memory_limit_bytes = uint64_t{3} << 30};
  for (size_t i = 0; i < ticket.seal.size(); ++i) ticket.seal[i] = static_cast<uint8_t>(7 * i);
  return ticket;
}

TEST(JobTicketTest, ComesBackFromItsText) {
  const JobTicket ticket = SomeTicket();
  const std::string text = TextOf(ticket);
  EXPECT_EQ(text.rfind("12-", 0), 0u) << text;
  const std::optional<JobTicket> parsed = ParseTicketUntrusted(text);
  ASSERT_TRUE(parsed.has_value());
  EXPECT_EQ(parsed->terms, ticket.terms);
  EXPECT_EQ(parsed->seal, ticket.seal);
}

TEST(JobTicketTest, NothingElseIsOne) {
  const std::string text = TextOf(SomeTicket());
  std::string letter = text, upper = text;
  letter.back() = 'g';
  upper.back() = 'F';
  for (const std::string& wrong :
       {std::string(), std::string("7"), std::string("7-"), std::string("-"), letter, upper,
        text.substr(0, text.size() - 1), text + "0", text + "00"}) {
    EXPECT_FALSE(ParseTicketUntrusted(wrong).has_value()) << wrong;
  }
}

}  // namespace
}  // namespace ipc
