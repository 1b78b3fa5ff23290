#include "ipc/job.h"

#include <cstring>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace ipc {
namespace {

constexpr size_t kTicketBytes = sizeof(JobTerms) + sizeof(Mac);
static_assert(sizeof(JobTicket) == kTicketBytes);

int DigitOf(char letter) {
  if (letter >= '0' && letter <= '9') return letter - '0';
  if (letter >= 'a' && letter <= 'f') return letter - 'a' + 10;
  return -1;
}

}  // namespace

std::string TextOf(const JobTicket& ticket) {
  return absl::StrCat(ticket.terms.number, "-",
                      absl::BytesToHexString(absl::string_view(
                          reinterpret_cast<const char*>(&ticket), sizeof ticket)));
}

std::optional<JobTicket> ParseTicketUntrusted(std::string_view text) {
  const size_t dash = text.find('-');
  if (dash == std::string_view::npos || text.size() - dash - 1 != 2 * kTicketBytes)
    return std::nullopt;
  const std::string_view digits = text.substr(dash + 1);
  unsigned char bytes[kTicketBytes];
  for (size_t i = 0; i < kTicketBytes; ++i) {
    const int high = DigitOf(digits[2 * i]), low = DigitOf(digits[2 * i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    bytes[i] = static_cast<unsigned char>(high * 16 + low);
  }
  JobTicket ticket;
  std::memcpy(&ticket, bytes, sizeof ticket);
  return ticket;
}

}  // namespace ipc
