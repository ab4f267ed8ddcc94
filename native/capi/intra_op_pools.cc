// Pools of worker threads for the runs that a thread starts.

#include "capi/export.h"
#include "executor/step/intra_op_pool.h"

using workbench::IntraOpPool;

// `threads` of at least 1.
WORKBENCH_EXPORT void* workbench_new_intra_op_pool(const char* name, int threads) {
  return new IntraOpPool(name, threads);
}

// Waits until the pool's threads have ended; no run may use them any more.
WORKBENCH_EXPORT void workbench_delete_intra_op_pool(void* pool) {
  delete static_cast<IntraOpPool*>(pool);
}

// Of the runs that the calling thread starts from here on; null: the devices' own threads.
WORKBENCH_EXPORT void workbench_use_intra_op_pool(void* pool) {
  IntraOpPool::UseInThisThread(static_cast<IntraOpPool*>(pool));
}
