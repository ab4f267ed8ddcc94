#ifndef WORKBENCH_HASHING_RANDOM_SEED_H_
#define WORKBENCH_HASHING_RANDOM_SEED_H_

#include <cstdint>
#include <random>

namespace workbench {

// What to begin a hash with, so that nobody can choose keys that all have the same. No result may
// depend on it.
inline uint64_t RandomSeed() {
  std::random_device random;
  return uint64_t{random()} << 32 | random();
}

}  // namespace workbench

#endif  // WORKBENCH_HASHING_RANDOM_SEED_H_
