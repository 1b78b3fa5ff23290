// References to the application's objects.
#include "graphs/user_object.h"

#include <gtest/gtest.h>

namespace {

using graphs::UserObject;
using graphs::UserReferences;

std::shared_ptr<UserObject> Make(int* ended, unsigned references) {
  return std::make_shared<UserObject>(
      ended, [](void* pointer) { ++*static_cast<int*>(pointer); }, references);
}

TEST(UserObject, EndsOnceWithTheLastReference) {
  int ended = 0;
  const std::shared_ptr<UserObject> object = Make(&ended, 2);
  object->Retain(1);
  object->Release(2);
  EXPECT_EQ(ended, 0);
  object->Release(5);
  EXPECT_EQ(ended, 1);
  object->Release(1);
  EXPECT_EQ(ended, 1);
}

TEST(UserReferences, ACopyHoldsItsOwn) {
  int ended = 0;
  const std::shared_ptr<UserObject> object = Make(&ended, 2);
  {
    UserReferences first;
    EXPECT_TRUE(first.empty());
    first.Take(object, 1);
    first.Take(object, 1);
    UserReferences second, third(first);
    second = first;
    EXPECT_FALSE(second.Release(object, 3));
    EXPECT_TRUE(second.Release(object, 2));
    EXPECT_TRUE(second.empty());
    EXPECT_FALSE(second.Release(object, 1));
    EXPECT_TRUE(first.Release(object, 2));
    EXPECT_EQ(ended, 0);
  }
  EXPECT_EQ(ended, 1);
}

TEST(UserReferences, AnAssignmentGivesUpWhatWasHeld) {
  int ended = 0;
  UserReferences references;
  references.Take(Make(&ended, 1), 1);
  references = UserReferences();
  EXPECT_EQ(ended, 1);
}

}  // namespace
