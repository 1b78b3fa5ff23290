#include "daemon/control/offenders.h"

#include <gtest/gtest.h>

#include "tests/daemon/control/parts.h"
#include "tests/ipc/testing.h"

namespace control {
namespace {

namespace wire = ipc::control;

class OffendersTest : public PartsTest {
 protected:
  size_t Faults() const { return observers_.faults().size(); }

  const ipc::TemporaryDir dir_;
  Offenders offenders_{
      {&loop_, &children_, &sessions_, &scheduler_, &observers_, &placement_}, dir_.path(), 5};
};

TEST_F(OffendersTest, APoisonedWorkersEndIsNoSecondFault) {
  Session* const session = Admitted(1);
  wire::Poisoned poisoned;
  poisoned.session_id = 1;
  poisoned.code = 700;
  offenders_.OnPoisoned(1, poisoned);
  EXPECT_TRUE(session->faulted);
  EXPECT_EQ(Faults(), 1u);
  EXPECT_EQ(offenders_.OnWorkerLost(1, {.sentence = "the worker ended"}), 0u);
  EXPECT_EQ(Faults(), 1u);
  EXPECT_EQ(offenders_.OnWorkerLost(2, {.sentence = "the worker ended"}), 0u);
  EXPECT_EQ(Faults(), 2u) << "nothing announced it";
}

TEST_F(OffendersTest, TheEndOfARetiredWorkerIsNoFault) {
  (void)offenders_.OnWorkerLost(1, {.expected = true, .sentence = "the worker ended"});
  EXPECT_EQ(Faults(), 0u);
}

TEST_F(OffendersTest, ASecondOffenceQuarantinesTheProgram) {
  Admitted(1);
  wire::Poisoned poisoned;
  poisoned.session_id = 1;
  offenders_.OnPoisoned(1, poisoned);
  EXPECT_FALSE(placement_.IsQuarantined(0, "program"));
  offenders_.OnPoisoned(2, poisoned);
  EXPECT_TRUE(placement_.IsQuarantined(0, "program"));
}

TEST_F(OffendersTest, AnOverdueSessionTakesItsWorkerAlongAfterTheOthersWereAskedToLeave) {
  Admitted(1)->phase = Phase::kEnding;
  Admitted(2);
  offenders_.OnOverdue(1);
  EXPECT_EQ(children_.SentTo<wire::ReleaseSession>(1).size(), 1u);
  EXPECT_EQ(children_.workers().size(), 2u) << "another worker, for them to go to";
  EXPECT_EQ(children_.workers().at(1).state, WorkerState::kRetired);
}

TEST_F(OffendersTest, AnOverdueSessionThatIsAloneTakesItsWorkerAlongAtOnce) {
  Admitted(1)->phase = Phase::kEnding;
  offenders_.OnOverdue(1);
  loop_.RunOnce();
  EXPECT_EQ(children_.killed(), std::vector<uint32_t>{1});
}

TEST_F(OffendersTest, ASessionThatHasEndedMeanwhileIsNotOverdue) {
  Admitted(1);
  offenders_.OnOverdue(1);
  offenders_.OnOverdue(2);
  EXPECT_EQ(Faults(), 0u);
  EXPECT_EQ(children_.workers().at(1).state, WorkerState::kReady);
}

}  // namespace
}  // namespace control
