#include "rewriting/graph/identity_device.h"

#include <algorithm>

#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/util/device_name_utils.h"

namespace workbench {
namespace {

using tensorflow::DEVICE_CPU;
using tensorflow::DeviceNameUtils;
using tensorflow::Node;

// The type of device that placement would give the node.
std::string PlacedType(const Node& node, const DeviceNameUtils::ParsedName& requested,
                       const tensorflow::DeviceSet& devices) {
  tensorflow::PrioritizedDeviceTypeVector supported;
  const absl::Status status = tensorflow::SupportedDeviceTypesForNode(
      devices.PrioritizedDeviceTypeList(), node.def(), &supported);
  if (!status.ok() || supported.empty()) return requested.type;
  if (!requested.has_type) return supported.front().first.type_string();
  for (const auto& [type, priority] : supported) {
    if (type.type_string() == requested.type) return requested.type;
  }
  return DEVICE_CPU;  // Soft placement; without it the copy of the node fails.
}

}  // namespace

std::string IdentityDevice(const Node& node, const tensorflow::DeviceSet* devices) {
  DeviceNameUtils::ParsedName device;
  if (devices == nullptr || !DeviceNameUtils::ParseFullName(node.requested_device(), &device)) {
    return node.requested_device();
  }
  const auto& types = node.output_types();
  const bool text = std::find(types.begin(), types.end(), tensorflow::DT_STRING) != types.end();
  if (!text && PlacedType(node, device, *devices) != DEVICE_CPU) return node.requested_device();
  if (device.has_type && device.type == DEVICE_CPU) return node.requested_device();
  device.has_type = true;
  device.type = DEVICE_CPU;
  device.has_id = false;
  return DeviceNameUtils::ParsedNameToString(device);
}

}  // namespace workbench
