#include "softgpu/driver/conditions.h"

#include <memory>

namespace softgpu {
namespace {

constexpr uint8_t kTag = 0x5c;  // no address begins so

class Setter final : public ConditionSetter {
 public:
  bool Set(uint64_t handle, uint32_t value) override {
    const std::shared_ptr<graphs::Condition> condition = AllConditions().Find(handle);
    if (condition != nullptr) condition->Set(value);
    return condition != nullptr;
  }
};

}  // namespace

graphs::Conditions& AllConditions() {
  static graphs::Conditions* const conditions = new graphs::Conditions(kTag);
  return *conditions;
}

ConditionSetter& DriverConditions() {
  static Setter* const setter = new Setter;
  return *setter;
}

}  // namespace softgpu
