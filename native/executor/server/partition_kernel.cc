// The kernel of executor/server/partition.h.

#include <memory>
#include <string>
#include <utility>

#include "executor/policies/executor.h"
#include "executor/server/partition.h"
#include "registration/guarded_kernel.h"
#include "tensorflow/core/common_runtime/executor.h"
#include "tensorflow/core/common_runtime/executor_factory.h"
#include "tensorflow/core/common_runtime/graph_optimizer.h"
#include "tensorflow/core/common_runtime/local_executor_params.h"
#include "tensorflow/core/common_runtime/memory_types.h"
#include "tensorflow/core/framework/cancellation.h"
#include "tensorflow/core/framework/device.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/op_segment.h"
#include "tensorflow/core/protobuf/config.pb.h"

namespace workbench {
namespace {

using tensorflow::CancellationManager;
using tensorflow::Executor;
using tensorflow::FunctionLibraryRuntime;
using tensorflow::Graph;
using tensorflow::NodeProperties;
using tensorflow::OpKernel;
using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;
using tensorflow::OpSegment;

// Keeps a session's kernels with state while an executor uses them.
class SessionKernels {
 public:
  SessionKernels(OpSegment* segment, std::string session)
      : segment_(segment), session_(std::move(session)) {
    segment_->AddHold(session_);
  }
  ~SessionKernels() { segment_->RemoveHold(session_); }
  SessionKernels(const SessionKernels&) = delete;
  SessionKernels& operator=(const SessionKernels&) = delete;

  absl::Status Make(FunctionLibraryRuntime* library,
                    const std::shared_ptr<const NodeProperties>& node, OpKernel** kernel) {
    if (!OpSegment::ShouldOwnKernel(library, node->node_def.op())) {
      return library->CreateKernel(node, kernel);
    }
    return segment_->FindOrCreate(
        session_, node->node_def.name(), kernel,
        [&](OpKernel** made) { return library->CreateKernel(node, made); });
  }

  static void Delete(FunctionLibraryRuntime* library, OpKernel* kernel) {
    if (kernel != nullptr && !OpSegment::ShouldOwnKernel(library, kernel->type_string())) {
      delete kernel;
    }
  }

 private:
  OpSegment* const segment_;
  const std::string session_;
};

// What a worker does with a partition before it makes its executor.
absl::Status Prepare(const std::string& optimizer, FunctionLibraryRuntime* library,
                     std::unique_ptr<Graph>* graph) {
  tensorflow::OptimizerOptions options;
  if (!options.ParseFromString(optimizer)) {
    return absl::InternalError("the partition's OptimizerOptions cannot be read");
  }
  tensorflow::Device* device = library->device();
  TF_RETURN_IF_ERROR(device->MaybeRewriteGraph(graph));
  tensorflow::GraphOptimizer(options).Optimize(library, library->env(), device, graph,
                                               tensorflow::GraphOptimizer::Options());
  return tensorflow::EnsureMemoryTypes(tensorflow::DeviceType(device->device_type()),
                                       device->name(), graph->get());
}

Executor::Args ArgsOf(OpKernelContext* context) {
  Executor::Args args;
  args.step_id = context->step_id();
  args.rendezvous = context->rendezvous();
  args.stats_collector = context->stats_collector();
  args.cancellation_manager = context->cancellation_manager();
  args.session_config = context->session_config();
  args.session_state = context->session_state();
  args.session_handle = context->session_handle();
  args.tensor_store = context->tensor_store();
  args.step_container = context->step_container();
  args.collective_executor = context->collective_executor();
  args.coordination_service_agent = context->coordination_service_agent();
  args.start_time_usecs = context->start_time_usecs();
  args.deadline = context->deadline();
  args.runner = *context->runner();
  return args;
}

class PartitionKernel : public tensorflow::AsyncOpKernel {
 public:
  explicit PartitionKernel(OpKernelConstruction* context) : AsyncOpKernel(context) {
    absl::Status status;
    status.Update(Caught([&] { status = Make(context); }));
    OP_REQUIRES_OK(context, status);
  }

  void ComputeAsync(OpKernelContext* context, DoneCallback done) override {
    Executor::Args args = ArgsOf(context);
    // Its own: an op's failure cancels the rest of this step here, and the worker's executor still
    // sees a failure, not the end of a step that was cancelled already. It is gone before the
    // worker's, which the end of the step may delete.
    auto* cancellation = new CancellationManager(args.cancellation_manager);
    args.cancellation_manager = cancellation;
    // TensorFlow has given this partition a thread of the worker's pool.
    args.run_all_kernels_inline = inline_;
    executor_->RunAsync(args, [context, cancellation, done = std::move(done)](
                                   const absl::Status& status) {
      delete cancellation;
      if (!status.ok()) context->SetStatus(status);
      done();
    });
  }

 private:
  absl::Status Make(OpKernelConstruction* context) {
    std::string type, session, optimizer;
    int64_t number = 0;
    TF_RETURN_IF_ERROR(context->GetAttr("executor", &type));
    TF_RETURN_IF_ERROR(context->GetAttr("session", &session));
    TF_RETURN_IF_ERROR(context->GetAttr("optimizer", &optimizer));
    TF_RETURN_IF_ERROR(context->GetAttr("number", &number));
    graph_ = PendingPartitions().Take(number);
    if (graph_ == nullptr) {
      return absl::FailedPreconditionError(
          "WorkbenchPartition runs a graph that Workbench's pass has made; it stands in no graph "
          "of yours");
    }
    FunctionLibraryRuntime* library = context->function_library();
    TF_RETURN_IF_ERROR(Prepare(optimizer, library, &graph_));
    kernels_ = std::make_unique<SessionKernels>(library->device()->op_segment(), session);
    tensorflow::LocalExecutorParams params;
    params.device = library->device();
    params.function_library = library;
    params.create_kernel = [kernels = kernels_.get(), library](
                               const std::shared_ptr<const NodeProperties>& node,
                               OpKernel** kernel) { return kernels->Make(library, node, kernel); };
    params.delete_kernel = [library](OpKernel* kernel) {
      SessionKernels::Delete(library, kernel);
    };
    inline_ = type == kInlineExecutor;
    TF_RETURN_IF_ERROR(RegisterExecutorType(type));
    return tensorflow::NewExecutor(type, params, *graph_, &executor_);
  }

  bool inline_ = false;
  // The executor goes first.
  std::unique_ptr<Graph> graph_;
  std::unique_ptr<SessionKernels> kernels_;
  std::unique_ptr<Executor> executor_;
};

REGISTER_GUARDED_KERNEL(Name(kPartitionOp).Device(tensorflow::DEVICE_CPU), PartitionKernel);
REGISTER_GUARDED_KERNEL(Name(kPartitionOp).Device(tensorflow::DEVICE_DEFAULT), PartitionKernel);

}  // namespace
}  // namespace workbench
