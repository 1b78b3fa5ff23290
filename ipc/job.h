// What lanewayd was told of a job by `laneway run`, and the ticket by which the job's programs join
// it.
//
// A program states no terms of its job. It shows a ticket, which `laneway run` got from lanewayd
// and put into the program's environment (LANEWAY_JOB). The ticket holds the job's terms, sealed by
// the daemon that gave it out; the next daemons of the same runtime directory know the seal
// (daemon/control/seal.h). So a job may gain programs when the daemon that named it is long gone. A
// daemon that remembers the job goes by what it remembers: terms may have changed since
// (`laneway limit`). Thread safety: values.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "ipc/scheduling_terms.h"

namespace ipc {

// A keyed hash: nobody without the key can make one.
using Mac = std::array<uint8_t, 32>;

// Every attribute of a job that `laneway run` may give stands here.
struct JobTerms {
  uint64_t number = 0;              // what people call it; of one runtime directory
  uint64_t id = 0;                  // random: two daemons may give out one number; 0: no ticket
  uint64_t memory_limit_bytes = 0;  // on each device; 0: none
  SchedulingTerms scheduling;

  bool operator==(const JobTerms&) const = default;
};
static_assert(std::has_unique_object_representations_v<JobTerms>, "its bytes are what is sealed");

struct JobTicket {
  JobTerms terms;
  Mac seal = {};
};

// What LANEWAY_JOB holds: NUMBER-HEX. The number is for people.
std::string TextOf(const JobTicket& ticket);
// Nothing for a text of another form. The seal is not looked at: lanewayd does that.
std::optional<JobTicket> ParseTicketUntrusted(std::string_view text);

}  // namespace ipc
