#ifndef WORKBENCH_HASHING_FINGERPRINT_H_
#define WORKBENCH_HASHING_FINGERPRINT_H_

#include <cstddef>
#include <cstdint>

namespace util {

// FarmHash's, which TensorFlow's library has; its header is not where TensorFlow's own looks for it.
uint64_t Fingerprint64(const char* text, size_t size);

}  // namespace util

#endif  // WORKBENCH_HASHING_FINGERPRINT_H_
