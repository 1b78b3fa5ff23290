// The order in which a thread takes the shim's locks. There are three groups, and a thread that
// holds a lock of one group takes no further lock of an earlier group:
//
//   asking   held while the worker is asked, so that a fact is fetched or an object made once. In
//            this order: the connection; primary contexts; libraries; modules; the upload of an
//            image. A thread holds only one of the remaining locks: devices, pools, the levels of
//            a mipmapped array, the short result under way, the pinned slots of results, registered
//            memory.
//   sending  the send lock (shim/pipeline.h). Its holder sends messages and asks nothing.
//   keeping  tables and lists. A holder asks nothing, takes no other lock of the shim, and runs no
//            code of the program.
//
// One lock of the group `keeping` serves several parts: the mutex of PersistentMemory, under which
// DeviceMemory changes the lane as well.
//
// Around a fork the shim locks the table of registered memory alone, so that the child gets pages
// of its own (shim/registered_memory.h). It locks nothing else: a forked child has no session
// (Client::AfterForkInChild), so each of its calls returns before the first lock. The other locks
// have no state that a child must release: it never waits for them.
//
// The ranks below stand in annotations alone (ACQUIRED_BEFORE, ACQUIRED_AFTER), which clang checks
// through all of them (scripts/locks). Nothing locks a rank, and none is defined.
#pragma once

#include "base/mutex.h"

namespace shim::lock_order {

class CAPABILITY("rank") Rank {};

extern Rank kSending;                           // behind `asking`, before the send lock
extern Rank kKeeping ACQUIRED_AFTER(kSending);  // behind the send lock, before `keeping`

}  // namespace shim::lock_order
