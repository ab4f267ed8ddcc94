#include "staging/input/input_watches.h"

#include <iterator>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"

namespace workbench {

using tensorflow::OpKernelContext;
using tensorflow::Tensor;

InputWatches& InputWatches::Global() {
  static auto* const watches = new InputWatches;
  return *watches;
}

void InputWatches::Watch(const std::vector<std::string>& inputs, const InputWatch& watch) {
  const auto is_its_own = [&watch](const std::weak_ptr<TensorBuffer>& other) {
    return !other.owner_before(watch.buffer) && !watch.buffer.owner_before(other);
  };
  std::lock_guard<std::mutex> lock(mu_);
  for (auto entry = entries_.begin(); entry != entries_.end();) {
    const auto& buffer = entry->second.buffer;
    entry = buffer.expired() || is_its_own(buffer) ? entries_.erase(entry) : std::next(entry);
  }
  for (const std::string& input : std::set<std::string>(inputs.begin(), inputs.end())) {
    entries_.emplace(input, Entry{watch.buffer, watch.timeout_millis});
  }
}

std::vector<InputWatch> InputWatches::Of(const std::string& input) const {
  std::vector<InputWatch> found;
  std::lock_guard<std::mutex> lock(mu_);
  const auto [first, last] = entries_.equal_range(input);
  for (auto entry = first; entry != last; ++entry) {
    if (auto alive = entry->second.buffer.lock()) {
      found.push_back({std::move(alive), entry->second.timeout_millis});
    }
  }
  return found;
}

absl::Status NameOfInput(OpKernelContext* context, std::string* name) {
  const Tensor& handle = context->input(0);
  const bool is_resource = handle.dtype() == tensorflow::DT_RESOURCE;
  if (handle.NumElements() != (is_resource ? 1 : 2)) {
    return absl::InvalidArgumentError(
        absl::StrCat("handle has shape ", handle.shape().DebugString(), "; expected one resource ",
                     "handle, or two strings: container and name"));
  }
  // Sessions of a process may have devices of one name, but share no resource manager then.
  const auto manager = reinterpret_cast<uintptr_t>(context->resource_manager());
  if (is_resource) {
    const auto& resource = handle.flat<tensorflow::ResourceHandle>()(0);
    *name = absl::StrCat(absl::Hex(manager), "/", resource.hash_code(), "/", resource.container(),
                         "/", resource.name());
  } else {
    const auto parts = handle.flat<tensorflow::tstring>();
    *name = absl::StrCat(absl::Hex(manager), "/", std::string(parts(0)), "/",
                         std::string(parts(1)));
  }
  return absl::OkStatus();
}

}  // namespace workbench
