#ifndef WORKBENCH_TABLE_EMBEDDING_TABLE_LOCK_H_
#define WORKBENCH_TABLE_EMBEDDING_TABLE_LOCK_H_

#include <mutex>
#include <shared_mutex>

namespace workbench {

// A shared lock whose exclusive side does not starve: threads that come after one that waits for it
// wait, too. For std::shared_lock and std::unique_lock.
class TableLock {
 public:
  void lock_shared() {
    std::lock_guard<std::mutex> gate(gate_);
    table_.lock_shared();
  }
  void unlock_shared() { table_.unlock_shared(); }

  void lock() {
    std::lock_guard<std::mutex> gate(gate_);
    table_.lock();
  }
  void unlock() { table_.unlock(); }

 private:
  std::mutex gate_;  // Taken before table_.
  std::shared_mutex table_;
};

}  // namespace workbench

#endif  // WORKBENCH_TABLE_EMBEDDING_TABLE_LOCK_H_
