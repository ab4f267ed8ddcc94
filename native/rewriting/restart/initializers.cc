#include "rewriting/restart/initializers.h"

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"

namespace workbench {

int HandleOfInitializer(const std::string& op) {
  static const auto* const handles = new absl::flat_hash_map<std::string, int>{
      {"MakeIterator", 1},          {"DeserializeIterator", 0}, {"MultiDeviceIteratorInit", 1},
      {"ReaderReset", 0},           {"ReaderResetV2", 0},       {"ReaderRestoreState", 0},
      {"ReaderRestoreStateV2", 0},
  };
  const auto found = handles->find(op);
  return found == handles->end() ? -1 : found->second;
}

int HandleOfSave(const std::string& op) {
  const bool saves = op == "SerializeIterator" || op == "ReaderSerializeState" ||
                     op == "ReaderSerializeStateV2";
  return saves ? 0 : -1;
}

bool MakesHandle(const tensorflow::Node& node) {
  const std::string& op = node.type_string();
  return op == "Iterator" || op == "IteratorV2" || op == "MultiDeviceIterator" ||
         absl::EndsWith(op, "Reader") || absl::EndsWith(op, "ReaderV2");
}

}  // namespace workbench
