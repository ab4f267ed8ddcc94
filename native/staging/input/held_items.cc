#include "staging/input/held_items.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tensorflow/core/framework/variant_op_registry.h"

namespace workbench {
namespace {

// The first line of what is saved.
constexpr char kFormat[] = "1";

}  // namespace

std::string HeldItems::DebugString() const {
  return absl::StrCat(items.size(), " items of stage '", stage, "'");
}

void HeldItems::Encode(tensorflow::VariantTensorData* data) const {
  data->set_type_name(kTypeName);
  std::string text = absl::StrCat(kFormat, "\n", stage);
  for (const TensorRecord& item : items) {
    absl::StrAppend(&text, "\n", item.size());
    for (const tensorflow::Tensor& tensor : item) *data->add_tensors() = tensor;
  }
  data->set_metadata(text);
}

bool HeldItems::Decode(const tensorflow::VariantTensorData& data) {
  const std::vector<std::string> lines = absl::StrSplit(data.metadata_string(), '\n');
  if (lines.size() < 2 || lines[0] != kFormat) return false;
  stage = lines[1];
  items.clear();
  int next = 0;
  for (size_t line = 2; line < lines.size(); ++line) {
    int size = 0;
    if (!absl::SimpleAtoi(lines[line], &size) || size < 0) return false;
    if (size > data.tensors_size() - next) return false;
    TensorRecord& item = items.emplace_back();
    for (const int end = next + size; next < end; ++next) item.push_back(data.tensors(next));
  }
  return next == data.tensors_size();
}

REGISTER_UNARY_VARIANT_DECODE_FUNCTION(HeldItems, HeldItems::kTypeName);

}  // namespace workbench
