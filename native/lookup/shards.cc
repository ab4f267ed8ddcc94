#include "lookup/shards.h"

#include <algorithm>
#include <utility>

namespace workbench {

Shards::Shards(PartitionStrategy strategy, std::vector<int64_t> rows)
    : strategy_(strategy), rows_(std::move(rows)) {
  starts_.push_back(0);
  for (int64_t each : rows_) {
    total_ = each < 0 || total_ < 0 ? -1 : total_ + each;
    starts_.push_back(total_);
  }
  if (strategy_ == PartitionStrategy::kModKey) total_ = -1;
  even_ = std::max<int64_t>(1, total_ / count() + (total_ % count() > 0 ? 1 : 0));
}

template <typename Id>
int64_t FindShards(const Shards& shards, const Id* ids, int64_t count, const int32_t* order,
                   int32_t* permutation, int64_t* counts) {
  std::fill(counts, counts + shards.count(), 0);
  for (int64_t k = 0; k < count; ++k) {
    const int64_t i = order == nullptr ? k : order[k];
    int shard = 0;
    int64_t row = 0;
    if (!shards.Find(ids[i], &shard, &row)) return i;
    permutation[2 * i] = shard;
    permutation[2 * i + 1] = static_cast<int32_t>(counts[shard]++);
  }
  return -1;
}

template <typename Id>
void ListRows(const Shards& shards, const Id* ids, int64_t count, const int32_t* permutation,
              Id* const* lists) {
  for (int64_t i = 0; i < count; ++i) {
    int shard = 0;
    int64_t row = 0;
    shards.Find(ids[i], &shard, &row);
    lists[permutation[2 * i]][permutation[2 * i + 1]] = static_cast<Id>(row);
  }
}

#define WORKBENCH_INSTANTIATE(Id)                                                         \
  template int64_t FindShards(const Shards&, const Id*, int64_t, const int32_t*, int32_t*, \
                              int64_t*);                                                   \
  template void ListRows(const Shards&, const Id*, int64_t, const int32_t*, Id* const*)
WORKBENCH_INSTANTIATE(int32_t);
WORKBENCH_INSTANTIATE(int64_t);
#undef WORKBENCH_INSTANTIATE

}  // namespace workbench
