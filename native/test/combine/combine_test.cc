#include "combine/combine.h"

#include <sys/mman.h>

#include <cmath>
#include <cstring>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "test/support/check.h"

namespace workbench {
namespace {

// A batch that owns its parts: random rows, over unique ids or not, over one shard or several.
struct Batch {
  std::vector<std::vector<float>> shards;
  std::vector<const float*> heads;
  std::vector<int64_t> vectors;
  std::vector<int32_t> splits{0}, index, permutation;
  std::vector<float> weights;
  LookedUp<float> in;
  int64_t ids = 0, unique = 0;

  Batch(std::mt19937_64& random, bool is_unique, int partitions, int64_t dim, bool weighted) {
    std::normal_distribution<float> normal;
    const int64_t rows = random() % 20;
    for (int64_t r = 0; r < rows; ++r) splits.push_back(splits.back() + random() % 5);
    ids = splits.back();
    unique = is_unique && ids > 0 ? 1 + random() % ids : ids;
    if (is_unique) {
      for (int64_t i = 0; i < ids; ++i) index.push_back(random() % unique);
    }
    vectors.assign(partitions, 0);
    for (int64_t u = 0; u < unique; ++u) {
      const int shard = random() % partitions;
      permutation.push_back(shard);
      permutation.push_back(static_cast<int32_t>(vectors[shard]++));
    }
    for (int64_t count : vectors) {
      shards.emplace_back(count * dim);
      for (float& value : shards.back()) value = normal(random);
    }
    for (const auto& shard : shards) heads.push_back(shard.data());
    for (int64_t i = 0; weighted && i < ids; ++i) weights.push_back(normal(random));
    in.shards = heads.data();
    in.dim = dim;
    in.rows = rows;
    in.splits = splits.data();
    in.index = is_unique ? index.data() : nullptr;
    in.permutation = partitions > 1 ? permutation.data() : nullptr;
    in.weights = weighted ? weights.data() : nullptr;
  }

  const float* Vector(int64_t id) const {
    int shard = 0;
    const int64_t at = in.Place(in.Unique(id), &shard);
    return heads[shard] + at * in.dim;
  }

  std::string Misfit() const {
    const Sizes sizes{ids, unique, static_cast<int>(vectors.size()), vectors.data()};
    return workbench::Misfit(sizes, in.rows, in.splits, in.index, in.permutation);
  }
};

// The loss Σ out · grad in doubles, the plain way.
double Loss(const Batch& batch, const std::vector<float>& grad) {
  const LookedUp<float>& in = batch.in;
  double loss = 0;
  for (int64_t row = 0; row < in.rows; ++row) {
    std::vector<double> sums(in.dim);
    double total = 0;
    for (int64_t id = in.splits[row]; id < in.splits[row + 1]; ++id) {
      const double weight = in.weights ? in.weights[id] : 1;
      const float* vector = batch.Vector(id);
      double squared = 0;
      for (int64_t c = 0; c < in.dim; ++c) squared += double{vector[c]} * vector[c];
      const double length = std::sqrt(squared);
      const double scale = in.max_norm >= 0 && length > in.max_norm ? in.max_norm / length : 1;
      for (int64_t c = 0; c < in.dim; ++c) sums[c] += weight * scale * vector[c];
      total += in.combiner == Combiner::kSqrtn ? weight * weight : weight;
    }
    double divisor = 1;
    if (in.combiner == Combiner::kMean) divisor = total;
    if (in.combiner == Combiner::kSqrtn) divisor = std::sqrt(total);
    for (int64_t c = 0; c < in.dim; ++c) {
      if (divisor != 0) loss += sums[c] / divisor * grad[row * in.dim + c];
    }
  }
  return loss;
}

void CheckNear(double found, double expected, double scale) {
  if (std::abs(found - expected) <= 2e-3 * (scale + std::abs(expected))) return;
  std::cerr << "found " << found << ", expected " << expected << "\n";
  CHECK(false);
}

// What a computation writes, and where it must not.
void CheckAgainstDifferences(std::mt19937_64& random, bool unique, int partitions, int64_t dim,
                             bool weighted, Combiner combiner, float max_norm) {
  Batch batch(random, unique, partitions, dim, weighted);
  batch.in.combiner = combiner;
  batch.in.max_norm = max_norm;
  // Weights that all but cancel out make means that no difference follows.
  for (float& weight : batch.weights) weight = std::abs(weight) + 0.5f;
  CHECK_EQ(batch.Misfit(), "");
  std::normal_distribution<float> normal;
  std::vector<float> grad(batch.in.rows * dim), out(grad.size());
  for (float& value : grad) value = normal(random);
  Combine(batch.in, 0, batch.in.rows, out.data());
  double found = 0;
  for (size_t i = 0; i < out.size(); ++i) found += double{out[i]} * grad[i];
  const double loss = Loss(batch, grad);
  CheckNear(found, loss, 1);

  std::vector<std::vector<float>> grads;
  std::vector<float*> heads;
  for (const auto& shard : batch.shards) grads.emplace_back(shard.size(), NAN);
  for (auto& each : grads) heads.push_back(each.data());
  std::vector<float> sums(batch.unique * dim);
  if (unique) {
    // Any split of the work gives the same.
    const int64_t half = batch.unique / 2;
    GatherGradient(batch.in, grad.data(), half, batch.unique, sums.data(), heads.data());
    GatherGradient(batch.in, grad.data(), 0, half, sums.data(), heads.data());
  } else {
    SpreadGradient(batch.in, grad.data(), 0, batch.in.rows, heads.data());
  }
  std::vector<float> of_weights(batch.weights.size());
  if (weighted) WeightGradient(batch.in, grad.data(), 0, batch.in.rows, of_weights.data());
  constexpr float kStep = 1e-2f;
  for (size_t p = 0; p < grads.size(); ++p) {
    for (int trial = 0; trial < 3 && !grads[p].empty(); ++trial) {
      const size_t at = random() % grads[p].size();
      float& value = batch.shards[p][at];
      const float before = value;
      value = before + kStep;
      const double above = Loss(batch, grad);
      value = before - kStep;
      const double below = Loss(batch, grad);
      value = before;
      CheckNear(grads[p][at], (above - below) / (2 * kStep), 1);
    }
  }
  for (size_t i = 0; i < of_weights.size(); ++i) {
    const float before = batch.weights[i];
    batch.weights[i] = before + kStep;
    const double above = Loss(batch, grad);
    batch.weights[i] = before - kStep;
    const double below = Loss(batch, grad);
    batch.weights[i] = before;
    CheckNear(of_weights[i], (above - below) / (2 * kStep), 1);
  }
}

TEST(ValuesAndGradientsFollowDifferences) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 60; ++round) {
    for (const Combiner combiner : {Combiner::kSum, Combiner::kMean, Combiner::kSqrtn}) {
      // Lengths near max_norm would have a kink; these are either side of it.
      for (const float max_norm : {-1.0f, 0.05f, 1000.0f}) {
        const int64_t dim = 1 + random() % 150;
        CheckAgainstDifferences(random, random() % 2, 1 + random() % 3, dim, random() % 2, combiner,
                                max_norm);
      }
    }
  }
}

TEST(RowsWithoutIdsAndWeightsThatCancelOutAreZero) {
  const float vectors[] = {1, 2, 3, 4};
  const float* heads[] = {vectors};
  const int32_t splits[] = {0, 0, 2};
  const float weights[] = {1, -1};
  LookedUp<float> in;
  in.shards = heads;
  in.dim = 2;
  in.rows = 2;
  in.splits = splits;
  in.weights = weights;
  in.combiner = Combiner::kMean;
  std::vector<float> out(4, NAN), grads(4, NAN);
  Combine(in, 0, 2, out.data());
  CHECK(out == std::vector<float>({0, 0, 0, 0}));
  float* to[] = {grads.data()};
  SpreadGradient(in, out.data(), 0, 2, to);
  CHECK(grads == std::vector<float>({0, 0, 0, 0}));
}

// One row of many ids over a small table: sums in floats would be off by a millionth.
TEST(LongRowsAreSummedAsExactlyAsShortOnes) {
  constexpr int64_t kDim = 20, kTable = 50, kIds = 3'000'000;
  std::mt19937_64 random(5);
  std::uniform_real_distribution<float> value(0.05f, 0.15f);
  std::vector<float> table(kTable * kDim), weights(kIds), out(kDim);
  for (float& each : table) each = value(random);
  for (float& each : weights) each = value(random);
  std::vector<int64_t> ids(kIds);
  for (int64_t& id : ids) id = static_cast<int64_t>(random() % kTable);
  const int32_t splits[] = {0, kIds};
  const float* heads[] = {table.data()};
  LookedUp<float> in;
  in.shards = heads;
  in.table_row = ids.data();
  in.dim = kDim;
  in.rows = 1;
  in.splits = splits;
  for (const bool weighted : {false, true}) {
    in.weights = weighted ? weights.data() : nullptr;
    for (const Combiner combiner : {Combiner::kSum, Combiner::kMean, Combiner::kSqrtn}) {
      in.combiner = combiner;
      Combine(in, 0, 1, out.data());
      double divisor = 0;
      std::vector<double> sums(kDim);
      for (int64_t i = 0; i < kIds; ++i) {
        const double weight = weighted ? weights[i] : 1;
        divisor += combiner == Combiner::kSqrtn ? weight * weight : weight;
        for (int64_t c = 0; c < kDim; ++c) sums[c] += weight * table[ids[i] * kDim + c];
      }
      if (combiner == Combiner::kSum) divisor = 1;
      if (combiner == Combiner::kSqrtn) divisor = std::sqrt(divisor);
      for (int64_t c = 0; c < kDim; ++c) CHECK(std::abs(out[c] / (sums[c] / divisor) - 1) < 1.2e-7);
    }
  }
}

TEST(OneIdEachIsTheSameSum) {
  std::mt19937_64 random(6);
  std::normal_distribution<float> value;
  for (const int64_t dim : {1, 8, 16, 20, 32, 64, 128, 130}) {
    for (const int64_t rows : {0, 1, 7, 300}) {
      constexpr int64_t kTable = 40;
      std::vector<float> table(kTable * dim);
      for (float& each : table) each = random() % 9 == 0 ? -0.0f : value(random);
      std::vector<int64_t> table_row(rows);
      for (int64_t& row : table_row) row = static_cast<int64_t>(random() % kTable);
      std::vector<int32_t> splits(rows + 1);
      std::iota(splits.begin(), splits.end(), 0);
      const float* heads[] = {table.data()};
      LookedUp<float> in;
      in.shards = heads;
      in.table_row = table_row.data();
      in.dim = dim;
      in.stride = dim + 3;
      in.rows = rows;
      in.splits = splits.data();
      for (const Combiner combiner : {Combiner::kSum, Combiner::kMean, Combiner::kSqrtn}) {
        in.combiner = combiner;
        std::vector<float> out[2];
        for (const bool one_each : {false, true}) {
          in.one_each = one_each;
          out[one_each].assign(rows * in.stride, 5.0f);
          Combine(in, rows / 3, rows, out[one_each].data());
        }
        CHECK(rows == 0 ||
              std::memcmp(out[0].data(), out[1].data(), out[0].size() * sizeof(float)) == 0);
      }
    }
  }
}

TEST(TheLengthAtMaxNormIsDifferentiatedThrough) {
  // (3, 4) shortened to 1: d out[0] / d vector = (0.128, -0.096).
  const float vector[] = {3, 4}, grad[] = {1, 0};
  const float* heads[] = {vector};
  const int32_t splits[] = {0, 1};
  LookedUp<float> in;
  in.shards = heads;
  in.dim = 2;
  in.rows = 1;
  in.splits = splits;
  in.max_norm = 1;
  float found[2];
  float* to[] = {found};
  SpreadGradient(in, grad, 0, 1, to);
  CHECK(std::abs(found[0] - 0.128f) < 1e-6 && std::abs(found[1] + 0.096f) < 1e-6);
}

TEST(MisfitsAreFoundBeforeAnythingIsRead) {
  std::mt19937_64 random(3);
  int found = 0;
  for (int round = 0; round < 20000; ++round) {
    Batch batch(random, random() % 2, 1 + random() % 3, 1 + random() % 20, random() % 2);
    // One number somewhere is wrong.
    auto& damaged = random() % 3 == 0   ? batch.splits
                    : random() % 2 == 0 ? batch.index
                                        : batch.permutation;
    if (!damaged.empty()) damaged[random() % damaged.size()] += static_cast<int>(random() % 9) - 4;
    if (!batch.Misfit().empty()) {
      ++found;
      continue;
    }
    std::vector<float> out(batch.in.rows * batch.in.dim);
    Combine(batch.in, 0, batch.in.rows, out.data());
    std::vector<std::vector<float>> grads;
    std::vector<float*> heads;
    for (const auto& shard : batch.shards) grads.emplace_back(shard.size());
    for (auto& each : grads) heads.push_back(each.data());
    std::vector<float> sums(batch.unique * batch.in.dim);
    if (batch.in.index) {
      GatherGradient(batch.in, out.data(), 0, batch.unique, sums.data(), heads.data());
    } else {
      SpreadGradient(batch.in, out.data(), 0, batch.in.rows, heads.data());
    }
  }
  CHECK(found > 1000);
}

TEST(MisfitsSayWhatIsWrong) {
  const int32_t splits[] = {0, 2, 1}, good[] = {0, 1, 2}, index[] = {0, 5}, permutation[] = {0, 7};
  const int64_t two[] = {2}, one[] = {1};
  CHECK_EQ(Misfit({1, 1, 1, one}, 2, splits, nullptr, nullptr),
           "row_splits must begin at 0, never fall and end at 1, the number of ids");
  CHECK_EQ(Misfit({2, 2, 1, two}, 2, good, index, nullptr),
           "unique_index[1] is 5, outside the 2 unique ids");
  CHECK_EQ(Misfit({2, 1, 1, one}, 2, good, nullptr, nullptr), "1 vectors were looked up for 2 ids");
  const int32_t same[] = {0, 0};
  CHECK_EQ(Misfit({2, 1, 1, one}, 2, good, same, permutation),
           "permutation[0] is [0, 7], where no shard has a vector");
}

TEST(NoTwoIdsShareAVector) {
  const int64_t vectors[] = {2, 1};
  const Sizes sizes{3, 3, 2, vectors};
  const int32_t good[] = {0, 1, 1, 0, 0, 0}, bad[] = {0, 1, 1, 0, 0, 1};
  CHECK_EQ(SharedVector(sizes, good), "");
  CHECK_EQ(SharedVector(sizes, bad),
           "permutation[2] is [0, 1], which another id has; expected each vector once");
}

TEST(APermutationMayBeLongerThanAnIntCounts) {
  // An int holds neither twice the one nor the other.
  constexpr int64_t kFar = (int64_t{1} << 30) + 5, kFarther = (int64_t{1} << 31) + 5;
  constexpr size_t kBytes = 2 * (kFarther + 1) * sizeof(int32_t);
  // Only the pages that are written take memory.
  void* const pages = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  CHECK(pages != MAP_FAILED);
  auto* const permutation = static_cast<int32_t*>(pages);
  LookedUp<float> in;
  in.permutation = permutation;
  for (const int64_t unique : {kFar, kFarther}) {
    permutation[2 * unique] = 3;
    permutation[2 * unique + 1] = 7;
    int shard = 0;
    CHECK_EQ(in.Place(unique, &shard), 7);
    CHECK_EQ(shard, 3);
  }
  munmap(pages, kBytes);
}

}  // namespace
}  // namespace workbench
