// A program may join a job, or go on as a session, with what an earlier daemon sealed, and with
// nothing else.
#include "daemon/control/jobs.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "daemon/control/hello_check.h"
#include "daemon/control/seal.h"
#include "ipc/runtime_dir.h"
#include "tests/ipc/testing.h"

namespace control {
namespace {

std::span<const std::byte> Bytes(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

class SealTest : public ::testing::Test {
 protected:
  std::string SecretFile() const { return ipc::SecretPath(dir_.path()); }
  Seal Load() {
    const absl::StatusOr<Seal> seal = Seal::Load(dir_.path());
    EXPECT_TRUE(seal.ok()) << seal.status();
    return seal.ok() ? *seal : Seal();
  }
  // A daemon with the key of the directory.
  Jobs NewJobs() {
    Jobs jobs;
    EXPECT_TRUE(jobs.LoadSeal(dir_.path()).ok());
    return jobs;
  }

  const ipc::TemporaryDir dir_;
};

TEST_F(SealTest, TheNextDaemonKnowsItAndAnotherDirectoryDoesNot) {
  const ipc::Mac mac = Load().Of("session", Bytes("7"));
  EXPECT_TRUE(Load().Is(mac, "session", Bytes("7")));
  EXPECT_FALSE(Load().Is(mac, "session", Bytes("8")));
  EXPECT_FALSE(Load().Is(mac, "job", Bytes("7"))) << "what is sealed for one thing is for no other";
  EXPECT_FALSE(Load().Is(mac, "sessio", Bytes("n7")));
  const ipc::TemporaryDir other;
  const absl::StatusOr<Seal> stranger = Seal::Load(other.path());
  ASSERT_TRUE(stranger.ok());
  EXPECT_FALSE(stranger->Is(mac, "session", Bytes("7")));
}

TEST_F(SealTest, ItsKeyIsTheUsersAlone) {
  (void)Load();
  struct stat info;
  ASSERT_EQ(stat(SecretFile().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0600u);
  ASSERT_EQ(chmod(SecretFile().c_str(), 0640), 0);
  EXPECT_FALSE(Seal::Load(dir_.path()).ok()) << "others may have read it";
  std::filesystem::remove(SecretFile());
  std::ofstream(SecretFile()) << "short";
  ASSERT_EQ(chmod(SecretFile().c_str(), 0600), 0);
  EXPECT_FALSE(Seal::Load(dir_.path()).ok());
  std::filesystem::remove(SecretFile());
  std::filesystem::create_symlink("/dev/zero", SecretFile());
  EXPECT_FALSE(Seal::Load(dir_.path()).ok());
}

TEST_F(SealTest, ATicketHoldsForSeveralDaemonsInARow) {
  Jobs first = NewJobs();
  const ipc::JobTerms terms = first.New({.memory_limit_bytes = 4096});
  const ipc::JobTicket ticket = first.TicketOf(terms);
  for (int daemon = 0; daemon < 3; ++daemon) {
    Jobs next = NewJobs();
    EXPECT_EQ(next.Join(ticket), terms);
    EXPECT_GT(next.New({}).number, terms.number) << "no two jobs have one number";
  }
}

TEST_F(SealTest, AForgedTicketJoinsNothing) {
  Jobs jobs = NewJobs();
  const ipc::JobTicket ticket = jobs.TicketOf(jobs.New({.memory_limit_bytes = 4096}));
  ipc::JobTicket forged = ticket;
  forged.terms.memory_limit_bytes = 1;
  EXPECT_FALSE(jobs.Join(forged).has_value());
  forged = ticket;
  forged.terms.number = UINT64_MAX;
  EXPECT_FALSE(jobs.Join(forged).has_value());
  EXPECT_FALSE(jobs.Join({}).has_value());
  forged = ticket;
  forged.seal[31] ^= 1;
  EXPECT_FALSE(jobs.Join(forged).has_value());
  EXPECT_EQ(jobs.NewNumber(), 2u) << "nothing of it was learned";
}

TEST_F(SealTest, ANumberThatAnotherJobHasByNowIsReplaced) {
  Jobs first = NewJobs();
  const ipc::JobTicket ticket = first.TicketOf(first.New({}));
  Jobs next = NewJobs();
  const ipc::JobTerms other = next.New({});
  ASSERT_EQ(other.number, ticket.terms.number);
  const std::optional<ipc::JobTerms> joined = next.Join(ticket);
  ASSERT_TRUE(joined.has_value());
  EXPECT_NE(joined->number, other.number);
  EXPECT_EQ(next.Join(ticket), joined) << "the same for all its programs";
  EXPECT_EQ(next.Join(next.TicketOf(other)), other);
}

TEST_F(SealTest, WhatHasChangedSinceHoldsForWhoComesLater) {
  Jobs jobs = NewJobs();
  ipc::JobTerms terms = jobs.New({.memory_limit_bytes = 4096});
  const ipc::JobTicket ticket = jobs.TicketOf(terms);
  terms.memory_limit_bytes = 8192;
  jobs.Change(terms);
  EXPECT_EQ(jobs.Join(ticket)->memory_limit_bytes, 8192u);
  Jobs next = NewJobs();
  next.Adopt(terms);  // by a session that its worker has told of
  EXPECT_EQ(next.Join(ticket)->memory_limit_bytes, 8192u);
}

TEST_F(SealTest, HowAJobIsScheduledStandsInItsTicketAndIsFoundByItsNumber) {
  Jobs jobs = NewJobs();
  ipc::JobTerms attributes;
  attributes.scheduling.weight = 300;
  attributes.scheduling.devices[0] = 1;
  attributes.scheduling.device_count = 1;
  const ipc::JobTerms terms = jobs.New(attributes);
  ASSERT_TRUE(jobs.Find(terms.number).has_value());
  EXPECT_EQ(*jobs.Find(terms.number), terms);
  EXPECT_FALSE(jobs.Find(jobs.NewNumber()).has_value()) << "it has no ticket";
  EXPECT_FALSE(jobs.Find(99).has_value());
  const std::optional<ipc::JobTicket> shown =
      ipc::ParseTicketUntrusted(ipc::TextOf(jobs.TicketOf(terms)));
  ASSERT_TRUE(shown.has_value());
  Jobs next = NewJobs();
  EXPECT_EQ(next.Join(*shown)->scheduling, attributes.scheduling);
  ipc::JobTicket forged = *shown;
  forged.terms.scheduling.weight = 10'000;
  EXPECT_FALSE(next.Join(forged).has_value());
}

TEST_F(SealTest, JobsWithoutEndTakeBoundedMemory) {
  Jobs jobs = NewJobs();
  const ipc::JobTicket oldest = jobs.TicketOf(jobs.New({.memory_limit_bytes = 4096}));
  for (size_t i = 0; i < Jobs::kJobsMax; ++i) (void)jobs.NewNumber();
  EXPECT_EQ(jobs.Join(oldest), oldest.terms) << "its ticket makes it known again";
}

// --- a program that goes on ----------------------------------------------------------------------

TEST(HeldClaimTest, IsBelievedAsFarAsItCanBe) {
  constexpr uint64_t kGiB = uint64_t{1} << 30;
  const HeldClaim modest{.claimed_bytes = 2 * kGiB, .capacity_bytes = 16 * kGiB};
  EXPECT_EQ(Believed(modest), 2 * kGiB);
  HeldClaim claim = modest;
  claim.claimed_bytes = UINT64_MAX;
  EXPECT_EQ(Believed(claim), 16 * kGiB) << "no more than the device has";
  claim.used_bytes = 10 * kGiB;
  EXPECT_EQ(Believed(claim), 6 * kGiB) << "and what others hold it can't";
  claim.counted_bytes = 4 * kGiB;
  EXPECT_EQ(Believed(claim), 10 * kGiB) << "a part of what is used is its own";
  claim.limit_bytes = 5 * kGiB;
  EXPECT_EQ(Believed(claim), 5 * kGiB);
  claim.limit_bytes = 1 * kGiB;
  EXPECT_EQ(Believed(claim), 4 * kGiB) << "a limit that came later takes nothing away";
  claim.used_bytes = UINT64_MAX;
  claim.counted_bytes = 0;
  EXPECT_EQ(Believed(claim), 0u);
}

}  // namespace
}  // namespace control
