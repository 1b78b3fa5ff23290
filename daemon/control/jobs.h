// The jobs that this daemon knows, with their numbers and the terms that `laneway run` gave them.
//
// Sessions have a copy of the terms in their records, which goes to their worker and comes back to
// the next daemon. Where the two differ, the terms here hold. Thread safety: one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "daemon/control/seal.h"
#include "ipc/job.h"

namespace control {

class Jobs {
 public:
  // Then the oldest are forgotten. A program with the ticket of such a job makes it known again.
  static constexpr size_t kJobsMax = 1 << 16;

  // Reads the key that seals tickets (Seal::Load). REQUIRES: no ticket was made yet.
  absl::Status LoadSeal(const std::string& runtime_dir);
  const Seal& seal() const { return seal_; }

  // A number that no job has: of a job without a ticket, or of a run that is a part of another job.
  uint64_t NewNumber();
  // A job with these attributes; it gets a number and an id of its own.
  ipc::JobTerms New(ipc::JobTerms attributes);
  // For the programs of this job. REQUIRES: terms.id != 0.
  ipc::JobTicket TicketOf(const ipc::JobTerms& terms) const;

  // The job as it stands now; nothing when no daemon of this runtime directory has sealed the
  // ticket. A number that another job has by now is replaced.
  std::optional<ipc::JobTerms> Join(const ipc::JobTicket& ticket);

  // A session of it runs: its worker says so.
  void Adopt(const ipc::JobTerms& terms);
  // Nothing: no job that has a ticket has this number.
  std::optional<ipc::JobTerms> Find(uint64_t number) const;
  const std::map<uint64_t, ipc::JobTerms>& all() const { return by_id_; }
  // Its attributes have changed (number and id tell which job it is).
  void Change(const ipc::JobTerms& terms);

 private:
  void Take(uint64_t number, uint64_t id);
  void Remember(const ipc::JobTerms& terms);

  Seal seal_;
  uint64_t next_ = 1;
  std::map<uint64_t, ipc::JobTerms> by_id_;  // those with a ticket
  std::map<uint64_t, uint64_t> ids_;         // by number, the oldest first; 0: no ticket
};

}  // namespace control
