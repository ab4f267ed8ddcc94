#ifndef WORKBENCH_HASHING_RANDOM_SEED_H_
#define WORKBENCH_HASHING_RANDOM_SEED_H_

#include <cstdint>
#include <random>

namespace workbench {

// The seed of a hash, random so that no input can be crafted whose keys all collide. No result may
// depend on it.
inline uint64_t RandomSeed() {
  std::random_device random;
  return uint64_t{random()} << 32 | random();
}

}  // namespace workbench

#endif  // WORKBENCH_HASHING_RANDOM_SEED_H_
