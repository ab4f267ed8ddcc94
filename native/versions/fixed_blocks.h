#ifndef WORKBENCH_VERSIONS_FIXED_BLOCKS_H_
#define WORKBENCH_VERSIONS_FIXED_BLOCKS_H_

#include <cstdint>
#include <optional>

#include "tensorflow/core/lib/core/threadpool.h"

namespace workbench {
namespace versions {

using ThreadPool = tensorflow::thread::ThreadPool;

// SchedulingParams has a function for it since TensorFlow 2.20, where its constructor warns.
template <typename Params>
auto FixedBlocksOf(int64_t size, int) -> decltype(Params::Fixed(size)) {
  return Params::Fixed(size);
}

template <typename Params>
Params FixedBlocksOf(int64_t size, long) {
  return Params(ThreadPool::SchedulingStrategy::kFixedBlockSize, std::nullopt, size);
}

}  // namespace versions

// Has ThreadPool::ParallelFor make blocks of `size` units, the last one smaller.
inline versions::ThreadPool::SchedulingParams FixedBlocks(int64_t size) {
  return versions::FixedBlocksOf<versions::ThreadPool::SchedulingParams>(size, 0);
}

}  // namespace workbench

#endif  // WORKBENCH_VERSIONS_FIXED_BLOCKS_H_
