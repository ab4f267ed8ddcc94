#ifndef WORKBENCH_TABLE_ROOM_LOCK_H_
#define WORKBENCH_TABLE_ROOM_LOCK_H_

#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "threading/guarded_by.h"

namespace workbench {

// A lock with rooms: any number of threads are in one of them, and nobody in another one meanwhile.
// Threads that come after one that waits for a room wait, too, so that each room gets its turn. A
// room is any address. Who is in a room enters no room of the same lock, and waits for no thread
// that may want one.
class RoomLock {
 public:
  void Enter(const void* room) {
    const std::lock_guard<std::mutex> gate(gate_);
    std::unique_lock<std::mutex> hold(mu_);
    empty_.wait(hold, [&] { return inside_ == 0 || room_ == room; });
    room_ = room;
    ++inside_;
  }

  void Leave() {
    const std::lock_guard<std::mutex> hold(mu_);
    if (--inside_ == 0) empty_.notify_one();
  }

 private:
  std::mutex gate_;  // Taken before mu_; whoever holds it is the only one that waits for `empty_`.
  std::mutex mu_;
  std::condition_variable empty_;
  const void* room_ WORKBENCH_GUARDED_BY(mu_) = nullptr;
  int64_t inside_ WORKBENCH_GUARDED_BY(mu_) = 0;
};

// Is in a room as long as it lives.
class InRoom {
 public:
  InRoom(RoomLock* lock, const void* room) : lock_(lock) { lock_->Enter(room); }
  ~InRoom() { lock_->Leave(); }
  InRoom(const InRoom&) = delete;
  InRoom& operator=(const InRoom&) = delete;

 private:
  RoomLock* const lock_;
};

}  // namespace workbench

#endif  // WORKBENCH_TABLE_ROOM_LOCK_H_
