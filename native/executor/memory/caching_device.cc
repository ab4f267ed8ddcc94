#include "executor/memory/caching_device.h"

#include <string>
#include <utility>

#include "executor/memory/block_cache.h"
#include "tensorflow/core/framework/allocator.h"
#include "tensorflow/core/framework/op_kernel.h"

namespace workbench {
namespace {

using tensorflow::AllocatorAttributes;
using tensorflow::Device;
using tensorflow::OpKernel;
using tensorflow::OpKernelContext;

class CachingAllocator : public tensorflow::Allocator {
 public:
  static CachingAllocator* Get() {
    static CachingAllocator* allocator = new CachingAllocator();
    return allocator;
  }

  std::string Name() override { return "workbench_cache"; }
  void* AllocateRaw(size_t alignment, size_t num_bytes) override {
    // No kernel asks for more than a cache line's.
    if (TF_PREDICT_FALSE(alignment > BlockCache::kAlignment)) return nullptr;
    return BlockCache::Get().Allocate(num_bytes);
  }
  void DeallocateRaw(void* block) override { BlockCache::Get().Free(block); }
};

class CachingDevice : public Device {
 public:
  explicit CachingDevice(Device* under) : Device(under->env(), under->attributes()), under_(under) {}

  tensorflow::Allocator* GetAllocator(AllocatorAttributes attributes) override {
    // Memory that other devices read has its own needs.
    const bool plain = !attributes.gpu_compatible() && !attributes.nic_compatible();
    return plain ? CachingAllocator::Get() : under_->GetAllocator(attributes);
  }

  // All else is the device's own.
  const DeviceBase* UnderlyingDevice() const override { return under_->UnderlyingDevice(); }
  DeviceBase* UnderlyingDevice() override { return under_->UnderlyingDevice(); }
  const CpuWorkerThreads* tensorflow_cpu_worker_threads() const override {
    return under_->tensorflow_cpu_worker_threads();
  }
  const AcceleratorDeviceInfo* tensorflow_accelerator_device_info() const override {
    return under_->tensorflow_accelerator_device_info();
  }
  tensorflow::thread::ThreadPool* tensorflow_device_thread_pool() override {
    return under_->tensorflow_device_thread_pool();
  }
  tensorflow::Allocator* GetScopedAllocator(AllocatorAttributes attributes,
                                            int64_t step_id) override {
    return under_->GetScopedAllocator(attributes, step_id);
  }
  tensorflow::ScopedAllocatorMgr* GetScopedAllocatorMgr() const override {
    return under_->GetScopedAllocatorMgr();
  }
  bool has_eigen_cpu_device() const override { return under_->has_eigen_cpu_device(); }
  const Eigen::ThreadPoolDevice* eigen_cpu_device() override { return under_->eigen_cpu_device(); }
  absl::Status MakeTensorFromProto(const tensorflow::TensorProto& proto,
                                   const AllocatorAttributes attributes,
                                   tensorflow::Tensor* tensor) override {
    return under_->MakeTensorFromProto(proto, attributes, tensor);
  }
  void CopyTensorInSameDevice(const tensorflow::Tensor* from, tensorflow::Tensor* to,
                              const tensorflow::DeviceContext* context,
                              tensorflow::StatusCallback done) override {
    under_->CopyTensorInSameDevice(from, to, context, std::move(done));
  }
  void Compute(OpKernel* kernel, OpKernelContext* context) override {
    under_->Compute(kernel, context);
  }
  void ComputeAsync(tensorflow::AsyncOpKernel* kernel, OpKernelContext* context,
                    tensorflow::AsyncOpKernel::DoneCallback done) override {
    under_->ComputeAsync(kernel, context, std::move(done));
  }
  absl::Status Sync() override { return under_->Sync(); }
  void Sync(const DoneCallback& done) override { under_->Sync(done); }
  bool AllowsSyncOnCompletion() const override { return under_->AllowsSyncOnCompletion(); }
  absl::Status RefreshStatus() override { return under_->RefreshStatus(); }
  absl::Status MaybeRewriteGraph(std::unique_ptr<tensorflow::Graph>* graph) override {
    return under_->MaybeRewriteGraph(graph);
  }
  absl::Status TryGetDeviceContext(tensorflow::DeviceContext** context) override {
    return under_->TryGetDeviceContext(context);
  }
  tensorflow::ResourceMgr* resource_manager() override { return under_->resource_manager(); }
  uint64_t SafeAllocFrontier(uint64_t old_value) override {
    return under_->SafeAllocFrontier(old_value);
  }
  bool IsLocal() const override { return under_->IsLocal(); }
  bool IsRemoteCallAllowed() const override { return under_->IsRemoteCallAllowed(); }

 private:
  Device* const under_;
  const BlockCache::User cache_user_;
};

}  // namespace

std::unique_ptr<Device> NewCachingDevice(Device* device) {
  if (device->device_type() != tensorflow::DEVICE_CPU) return nullptr;
  return std::make_unique<CachingDevice>(device);
}

}  // namespace workbench
