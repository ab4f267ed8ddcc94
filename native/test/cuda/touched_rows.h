#ifndef WORKBENCH_TEST_CUDA_ASKED_ROWS_H_
#define WORKBENCH_TEST_CUDA_ASKED_ROWS_H_

// Who asked for which row, as a device and as the CPU keep it.

#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

#include "combine/combine.h"
#include "cuda/calls.h"
#include "cuda/rows/touched_inl.h"
#include "lookup/grouped/table_rows.h"
#include "test/cuda/host_device.h"
#include "test/cuda/random_batch.h"

namespace workbench::cuda {

// A workspace of just as many bytes as are asked for.
struct DeviceTouched {
  std::vector<char> memory;
  Touched touched;

  DeviceTouched(const GroupCall& call, Numbering numbering) {
    Unordered unordered;
    memory.resize(TakeParts<HostDevice>(call, numbering, nullptr, &touched, &unordered));
  }
};

// Of one table of a batch.
struct CpuTouched {
  TableRows rows;
  std::vector<const float*> gradients;
  std::vector<float> factors;

  template <typename Id>
  CpuTouched(const RandomBatch<Id>& batch, int table) {
    std::vector<int64_t> ids;
    std::vector<int32_t> who;
    for (const RandomFeature<Id>& feature : batch.features) {
      if (feature.call.table != table) continue;
      const KeptIds kept = feature.Kept();
      if (feature.call.weights != nullptr) {
        AddWeighted(feature.call, kept, &ids, &who);
        continue;
      }
      for (int64_t e = 0; e < feature.call.examples; ++e) {
        const int32_t first = kept.splits[e], last = kept.splits[e + 1];
        const float length = static_cast<float>(last - first);
        factors.push_back(feature.call.combiner == Combiner::kSum    ? 1.0f
                          : feature.call.combiner == Combiner::kMean ? 1.0f / length
                                                                     : 1.0f / std::sqrt(length));
        for (int32_t i = first; i < last; ++i) {
          ids.push_back(kept.rows[i]);
          who.push_back(static_cast<int32_t>(gradients.size()));
        }
        gradients.push_back(static_cast<const float*>(feature.call.vectors) +
                            e * feature.call.stride);
      }
    }
    rows = TableRows(ids.size());
    rows.ids = ids.size();
    std::copy(ids.begin(), ids.end(), rows.rows.get());
    std::copy(who.begin(), who.end(), rows.examples.get());
    OrderRows(&rows);
  }

  // Each id is an example of its own.
  void AddWeighted(const FeatureCall& call, const KeptIds& kept, std::vector<int64_t>* ids,
                   std::vector<int32_t>* who) {
    LookedUp<float> in;
    in.rows = call.examples;
    in.splits = kept.splits.data();
    in.weights = kept.weights.data();
    in.combiner = call.combiner;
    std::vector<float> of_examples(call.examples);
    RowFactors(in, 0, in.rows, of_examples.data());
    for (int64_t e = 0; e < call.examples; ++e) {
      for (int32_t i = kept.splits[e]; i < kept.splits[e + 1]; ++i) {
        ids->push_back(kept.rows[i]);
        who->push_back(static_cast<int32_t>(gradients.size()));
        gradients.push_back(static_cast<const float*>(call.vectors) + e * call.stride);
        factors.push_back(of_examples[e] * kept.weights[i]);
      }
    }
  }

  TouchedRows<float> ToSum(int64_t dim) const {
    return {dim, rows.firsts.get(), rows.examples.get(), gradients.data(), factors.data()};
  }
};

}  // namespace workbench::cuda

#endif  // WORKBENCH_TEST_CUDA_ASKED_ROWS_H_
