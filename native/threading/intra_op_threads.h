#ifndef WORKBENCH_THREADING_INTRA_OP_THREADS_H_
#define WORKBENCH_THREADING_INTRA_OP_THREADS_H_

// Kernels' work on as many threads as their device has intra-op threads.

#include <cstdint>

#include "tensorflow/core/framework/op_kernel.h"
#include "threading/shared_work.h"

namespace workbench {

// Work that is worth another thread, in nanoseconds: it takes as long to wake up.
constexpr int64_t kNanosecondsOfThread = 50'000;
// A thread that comes late leaves ranges to the others.
constexpr int64_t kRangesOfThread = 8;

// Of the intra-op threads, this one among them, how many `cost` is worth.
int64_t WorthThreads(tensorflow::OpKernelContext* c, int64_t cost,
                     int64_t of_thread = kNanosecondsOfThread);

// Of `count`, how many are in each of as many ranges as `threads` share well.
int64_t RangeSize(int64_t count, int64_t threads);

// Runs `part` over ranges of at most `size` of [0, count), on this thread and others, `threads` in
// all.
void ByRanges(int64_t threads, int64_t count, int64_t size, const Part& part);

// The same on as many threads as `cost` is worth, in ranges that these share well.
void ByCost(tensorflow::OpKernelContext* c, int64_t count, int64_t cost, const Part& part,
            int64_t of_thread = kNanosecondsOfThread);

}  // namespace workbench

#endif  // WORKBENCH_THREADING_INTRA_OP_THREADS_H_
