#ifndef WORKBENCH_STAGING_INPUT_HELD_ITEMS_H_
#define WORKBENCH_STAGING_INPUT_HELD_ITEMS_H_

#include <string>
#include <vector>

#include "staging/buffer_resource.h"
#include "tensorflow/core/framework/variant_tensor_data.h"

namespace workbench {

// What a stage has read and no step has taken, as an element of the saved state of an iterator,
// behind the elements of TensorFlow's own. All tensors are in the host's memory.
struct HeldItems {
  static constexpr char kTypeName[] = "workbench::HeldItems";

  std::string stage;
  std::vector<TensorRecord> items;

  std::string TypeName() const { return kTypeName; }
  std::string DebugString() const;
  void Encode(tensorflow::VariantTensorData* data) const;
  // False for what it does not know.
  bool Decode(const tensorflow::VariantTensorData& data);
};

}  // namespace workbench

#endif  // WORKBENCH_STAGING_INPUT_HELD_ITEMS_H_
