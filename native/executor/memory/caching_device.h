#ifndef WORKBENCH_EXECUTOR_MEMORY_CACHING_DEVICE_H_
#define WORKBENCH_EXECUTOR_MEMORY_CACHING_DEVICE_H_

#include <memory>

#include "tensorflow/core/framework/device.h"

namespace workbench {

// The CPU `device` with one difference: kernels get their memory from BlockCache. Must not outlive
// it; tensors may outlive both. Null for other devices: their memory is not the C library's.
std::unique_ptr<tensorflow::Device> NewCachingDevice(tensorflow::Device* device);

}  // namespace workbench

#endif  // WORKBENCH_EXECUTOR_MEMORY_CACHING_DEVICE_H_
