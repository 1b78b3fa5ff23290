// Where memory may be, and which ways it may take: all places against all, and the ways of a swap.
#include "scheduler/place.h"

#include <gtest/gtest.h>

#include <set>
#include <utility>
#include <vector>

namespace scheduler {
namespace {

constexpr Place kDevice{Residence::kDevice};
constexpr Place kGoing{Residence::kGoingOut}, kGoingWithLane{Residence::kGoingOut, 1};
constexpr Place kHost{Residence::kHost}, kHostWithLane{Residence::kHost, 1};
constexpr Place kComing{Residence::kComingIn}, kComingWithLane{Residence::kComingIn, 1};

TEST(PlaceTest, SevenPlacesAreValid) {
  size_t valid = 0;
  for (uint32_t residence = 0; residence < 8; ++residence) {
    for (uint32_t lane_saved = 0; lane_saved < 4; ++lane_saved) {
      valid += Valid({static_cast<Residence>(residence), lane_saved});
    }
  }
  EXPECT_EQ(valid, 7u);
  EXPECT_FALSE(Valid({Residence::kDevice, 1})) << "on the device the lane has its own memory";
}

TEST(PlaceTest, AWayLeadsOnOrBackAndTakesTheSameAlong) {
  const std::vector<Place> places = {kDevice,       kGoing,  kGoingWithLane, kHost,
                                     kHostWithLane, kComing, kComingWithLane};
  const std::vector<std::pair<Place, Place>> legal = {
      {kDevice, kGoing}, {kDevice, kGoingWithLane},        {kGoing, kHost},
      {kGoing, kDevice}, {kGoingWithLane, kHostWithLane},  {kGoingWithLane, kDevice},
      {kHost, kComing},  {kHostWithLane, kComingWithLane}, {kComing, kDevice},
      {kComing, kHost},  {kComingWithLane, kDevice},       {kComingWithLane, kHostWithLane},
  };
  for (const Place from : places) {
    for (const Place to : places) {
      bool expected = false;
      for (const std::pair<Place, Place>& way : legal) {
        expected = expected || (way.first == from && way.second == to);
      }
      EXPECT_EQ(Legal(from, to), expected)
          << static_cast<uint32_t>(from.residence) << "/" << from.lane_saved << " to "
          << static_cast<uint32_t>(to.residence) << "/" << to.lane_saved;
    }
  }
}

}  // namespace
}  // namespace scheduler
