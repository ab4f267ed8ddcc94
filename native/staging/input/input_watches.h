#ifndef WORKBENCH_STAGING_INPUT_INPUT_WATCHES_H_
#define WORKBENCH_STAGING_INPUT_INPUT_WATCHES_H_

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "staging/buffer_resource.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "threading/guarded_by.h"

namespace workbench {

// A stage to begin again with its input.
struct InputWatch {
  std::shared_ptr<TensorBuffer> buffer;
  int64_t timeout_millis = 0;  // How long an initializer waits for the producers.
};

// Which stages of this process read which iterators and readers, whatever session, graph or
// function initializes these. Written when a stage is resumed, read when an input is initialized;
// puts and takes do not come here. Buffers are not kept alive.
class InputWatches {
 public:
  static InputWatches& Global();

  // From now on the buffer's stage reads these inputs, and no others.
  void Watch(const std::vector<std::string>& inputs, const InputWatch& watch);

  // The stages that read the input.
  std::vector<InputWatch> Of(const std::string& input) const;

 private:
  struct Entry {
    std::weak_ptr<TensorBuffer> buffer;
    int64_t timeout_millis;
  };

  mutable std::mutex mu_;  // Innermost.
  std::multimap<std::string, Entry> entries_ WORKBENCH_GUARDED_BY(mu_);
};

// The name, unique in the process, of the iterator or reader whose handle is the kernel's first
// input: a resource handle, or the container and name that old readers have.
absl::Status NameOfInput(tensorflow::OpKernelContext* context, std::string* name);

}  // namespace workbench

#endif  // WORKBENCH_STAGING_INPUT_INPUT_WATCHES_H_
