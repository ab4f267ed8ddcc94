#include "threading/intra_op_threads.h"

#include <algorithm>

namespace workbench {

int64_t WorthThreads(tensorflow::OpKernelContext* c, int64_t cost, int64_t of_thread) {
  const int64_t threads = c->device()->tensorflow_cpu_worker_threads()->num_threads;
  return std::min<int64_t>(threads, 1 + cost / of_thread);
}

int64_t RangeSize(int64_t count, int64_t threads) {
  if (threads == 1) return std::max<int64_t>(1, count);
  const int64_t ranges = threads * kRangesOfThread;
  return std::max<int64_t>(1, (count + ranges - 1) / ranges);
}

void ByRanges(int64_t threads, int64_t count, int64_t size, const Part& part) {
  RunShared({{count, size, part}}, threads - 1);
}

void ByCost(tensorflow::OpKernelContext* c, int64_t count, int64_t cost, const Part& part,
            int64_t of_thread) {
  const int64_t threads = WorthThreads(c, cost, of_thread);
  ByRanges(threads, count, RangeSize(count, threads), part);
}

}  // namespace workbench
