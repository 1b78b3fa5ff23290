#include "graphs/condition.h"

#include "base/find.h"

namespace graphs {

bool MayHaveBodies(Branch kind, size_t bodies) {
  if (kind == Branch::kWhile) return bodies == 1;
  return bodies != 0 && (kind == Branch::kSwitch || bodies <= 2);
}

std::optional<size_t> BodyFor(Branch kind, size_t bodies, uint32_t value) {
  size_t body = value;
  if (kind != Branch::kSwitch) body = value != 0 ? 0 : 1;  // the second body of an if is its else
  return body < bodies ? std::optional(body) : std::nullopt;
}

bool Condition::Take(const std::shared_ptr<void>& taker) {
  base::MutexLock lock(&mutex_);
  if (!taker_.expired()) return false;
  taker_ = taker;
  return true;
}

bool Condition::IsTaken() const {
  base::MutexLock lock(&mutex_);
  return !taker_.expired();
}

std::shared_ptr<Condition> Conditions::Create(const Condition::Terms& terms) {
  base::MutexLock lock(&mutex_);
  const uint64_t name = tag_ | ++last_;
  const std::shared_ptr<Condition> made(new Condition(name, terms), [this](Condition* condition) {
    Forget(condition->name());
    delete condition;
  });
  conditions_.emplace(name, made);
  return made;
}

std::shared_ptr<Condition> Conditions::Find(uint64_t name) const {
  base::MutexLock lock(&mutex_);
  return base::FindOr(conditions_, name, {}).lock();
}

void Conditions::Forget(uint64_t name) {
  base::MutexLock lock(&mutex_);
  conditions_.erase(name);
}

}  // namespace graphs
