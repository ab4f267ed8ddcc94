// Objects of these types pass between this library and TensorFlow's, and code for them is inlined
// into both. Compiler options, those of sanitizers among them, may change a layout on one side
// only: then the library must not build.

#include <cstdint>
#include <string>

#include "absl/base/config.h"
#include "absl/container/btree_map.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/cord.h"
#include "absl/synchronization/mutex.h"

namespace workbench {
namespace {

// As in TensorFlow's wheel, which is built without sanitizers.
static_assert(!absl::container_internal::SwisstableGenerationsEnabled());
static_assert(!absl::container_internal::BtreeGenerationsEnabled());
// TensorFlow 2.22 comes with an Abseil whose tables are a word smaller.
constexpr int kTableBytes = ABSL_LTS_RELEASE_VERSION < 20260526 ? 32 : 24;
static_assert(sizeof(absl::flat_hash_map<std::string, void*>) == kTableBytes);
static_assert(sizeof(absl::flat_hash_set<std::string>) == kTableBytes);
static_assert(sizeof(absl::btree_map<int64_t, void*>) == 24);
static_assert(sizeof(absl::InlinedVector<int64_t, 4>) == 40);
static_assert(sizeof(absl::Status) == 8);
static_assert(sizeof(absl::StatusOr<int64_t>) == 16);
static_assert(sizeof(absl::Cord) == 16);
static_assert(sizeof(absl::Mutex) == 8);
static_assert(sizeof(std::string) == 32);

}  // namespace
}  // namespace workbench
