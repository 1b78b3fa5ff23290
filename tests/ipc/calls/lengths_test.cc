// How far parameters reach, what may be named, and what becomes of names that were not sent.
#include <cstdint>

#include "gtest/gtest.h"
#include "ipc/codec.h"
#include "ipc/codec_client.h"
#include "ipc/handles.h"
#include "tests/ipc/calls/fakes.h"

namespace ipc {
namespace {

TEST(LengthsTest, NegativeCountsAreNone) {
  Param count, array;
  count.role.kind = RoleKind::kValue;
  count.bytes = 4;
  count.is_signed = true;
  array.role.kind = RoleKind::kIn;
  array.role.rule = LengthRule::kParam;
  array.bytes = 8;
  const Param params[] = {count, array};
  for (const int32_t n : {-1, 0, 3}) {
    const void* const values[] = {&n, nullptr};
    EXPECT_EQ(IntegerOf(count, &n), n);
    EXPECT_EQ(ReachOf(params, 1, values), n < 0 ? 0u : 8u * static_cast<uint64_t>(n));
  }
}

TEST(LengthsTest, AComplexScalarHasTwoParts) {
  EXPECT_EQ(BytesOfScale(CUBLAS_COMPUTE_32F, CUDA_R_32F), 4u);
  EXPECT_EQ(BytesOfScale(CUBLAS_COMPUTE_32F, CUDA_C_32F), 8u);
  EXPECT_EQ(BytesOfScale(CUBLAS_COMPUTE_64F, CUDA_C_64F), 16u);
  EXPECT_EQ(BytesOfScale(CUBLAS_COMPUTE_32I, CUDA_R_8I), 4u);
}

TEST(NamesTest, AClientGivesNamesBetweenTheFixedOnesAndTheEnd) {
  EXPECT_FALSE(IsClientName(HandleId::kNull));
  EXPECT_FALSE(IsClientName(HandleId::kLegacyStream));
  EXPECT_FALSE(IsClientName(HandleId::kPerThreadStream));
  EXPECT_TRUE(IsClientName(HandleId::kFirst));
  EXPECT_TRUE(IsClientName(static_cast<HandleId>(static_cast<uint32_t>(HandleId::kEnd) - 1)));
  EXPECT_FALSE(IsClientName(HandleId::kEnd));
}

TEST(NamesTest, OfARequestThatIsNotSentNoNameIsTaken) {
  FakeCaller caller;
  CUmodule module = nullptr;
  char log[16] = "";
  const Arguments<Op::LoadModule> args(&module, nullptr, nullptr, nullptr, 0u, nullptr, 0u, log,
                                       unsigned{sizeof log});
  uint64_t request[kBodyBytesMax / 8];
  Writer writer({reinterpret_cast<std::byte*>(request), sizeof request});
  EXPECT_EQ(EncodeRequest(Op::LoadModule, args.values(), caller, &writer).refusal,
            Refusal::kBadValue);
  EXPECT_TRUE(caller.named.empty());
}

}  // namespace
}  // namespace ipc
