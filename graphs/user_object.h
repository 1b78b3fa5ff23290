// Objects of the application that live while references to them do: graphs, their clones,
// executable graphs and launches hold some (cuUserObjectCreate). The last reference that goes calls
// the object's destructor, in the thread that gave it up.
//
// Thread safety: a UserObject, from any thread. UserReferences is a value of its owner's.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>

namespace graphs {

class UserObject {
 public:
  using Destroy = void (*)(void*);

  UserObject(void* pointer, Destroy destroy, unsigned references)
      : pointer_(pointer), destroy_(destroy), references_(references) {}
  UserObject(const UserObject&) = delete;

  void Retain(unsigned count) { references_ += count; }
  // Calls the destructor with the last one; more than there are is as many as there are.
  void Release(unsigned count);

 private:
  void* const pointer_;
  const Destroy destroy_;
  std::atomic<unsigned> references_;
};

// References to such objects, given up when it ends. A copy holds as many of its own.
class UserReferences {
 public:
  UserReferences() = default;
  UserReferences(const UserReferences& other);
  UserReferences& operator=(const UserReferences& other);
  ~UserReferences();

  bool empty() const { return counts_.empty(); }
  // Takes over `count` references that the caller holds.
  void Take(const std::shared_ptr<UserObject>& object, unsigned count);
  // False, and nothing happens, when it holds fewer.
  bool Release(const std::shared_ptr<UserObject>& object, unsigned count);

 private:
  std::map<std::shared_ptr<UserObject>, unsigned> counts_;
};

}  // namespace graphs
