#include "absl/strings/str_cat.h"
#include "registration/guarded_kernel.h"
#include "tensorflow/core/platform/mem.h"
#include "variable/embedding_variable_resource.h"

namespace workbench {
namespace {

using tensorflow::DEVICE_CPU;
using tensorflow::OpKernel;
using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;
using tensorflow::Tensor;
using tensorflow::TensorShape;

// Of a filter: enough for any memory, and no size below overflows.
constexpr int64_t kMostCounters = int64_t{1} << 37;

class EmbeddingVariableOp : public OpKernel {
 public:
  explicit EmbeddingVariableOp(OpKernelConstruction* context) : OpKernel(context) {
    OP_REQUIRES_OK(context, context->GetAttr("container", &container_));
    OP_REQUIRES_OK(context, context->GetAttr("shared_name", &shared_name_));
    OP_REQUIRES_OK(context, context->GetAttr("dim", &options_.dim));
    OP_REQUIRES_OK(context, context->GetAttr("filter_freq", &options_.filter_freq));
    OP_REQUIRES_OK(context, context->GetAttr("no_permission", &options_.no_permission));
    OP_REQUIRES_OK(context, context->GetAttr("keep_versions", &options_.keep_versions));
    OP_REQUIRES_OK(context, context->GetAttr("most_waiting", &options_.most_waiting));
    OP_REQUIRES_OK(context, context->GetAttr("bloom_counters", &options_.bloom_counters));
    OP_REQUIRES_OK(context, context->GetAttr("bloom_hashes", &options_.bloom_hashes));
    OP_REQUIRES_OK(context, context->GetAttr("bloom_bytes", &options_.bloom_bytes));
    OP_REQUIRES(context, !shared_name_.empty(),
                absl::InvalidArgumentError(absl::StrCat(
                    "'", name(), "' has an empty shared_name; sessions find a table by it")));
    OP_REQUIRES_OK(context, CheckMost("dim", options_.dim, kMostDim));
    OP_REQUIRES_OK(context, CheckMost("filter_freq", options_.filter_freq, kMostFreq));
    OP_REQUIRES_OK(context, CheckMost("most_waiting", options_.most_waiting, kMostCounters));
    OP_REQUIRES_OK(context, CheckMost("bloom_counters", options_.bloom_counters, kMostCounters));
    OP_REQUIRES_OK(context, CheckMost("bloom_hashes", options_.bloom_hashes, 64));
    OP_REQUIRES_OK(context, CheckMost("bloom_bytes", options_.bloom_bytes, 8));
    OP_REQUIRES(context,
                (options_.bloom_bytes & (options_.bloom_bytes - 1)) == 0 &&
                    (options_.bloom_counters == 0) == (options_.bloom_hashes == 0),
                absl::InvalidArgumentError(absl::StrCat(
                    "EmbeddingVariable '", shared_name_, "' has a Bloom filter of ",
                    options_.bloom_counters, " counters of ", options_.bloom_bytes, " bytes, ",
                    options_.bloom_hashes, " of a key; expected 1, 2, 4 or 8 bytes, and counters ",
                    "of a key where there are counters")));
  }

  void Compute(OpKernelContext* context) override {
    tensorflow::ResourceMgr* manager = context->resource_manager();
    const std::string& container = container_.empty() ? manager->default_container() : container_;
    EmbeddingResource* found = nullptr;
    OP_REQUIRES_OK(context, manager->LookupOrCreate<EmbeddingResource>(
                                container, shared_name_, &found, [this](EmbeddingResource** made) {
                                  return Make(made);
                                }));
    const EmbeddingPtr resource(found);
    OP_REQUIRES_OK(context, CheckOptions(resource->table()->options()));
    OP_REQUIRES_OK(context, MakeResourceHandleToOutput(
                                context, 0, container, shared_name_,
                                tensorflow::TypeIndex::Make<EmbeddingResource>()));
  }

 private:
  // A Bloom filter takes its memory at once, and a process that takes too much is ended.
  absl::Status Make(EmbeddingResource** made) const {
    const int64_t total = tensorflow::port::GetMemoryInfo().total;
    if (options_.bloom_counters > total / options_.bloom_bytes) {
      return absl::ResourceExhaustedError(
          absl::StrCat("the Bloom filter of EmbeddingVariable '", shared_name_, "' has ",
                       options_.bloom_counters, " counters of ", options_.bloom_bytes,
                       " bytes; expected less than this machine's ", total, " bytes of memory"));
    }
    *made = new EmbeddingResource(shared_name_, options_);
    return absl::OkStatus();
  }

  absl::Status CheckMost(const char* attribute, int64_t value, int64_t most) const {
    if (value <= most) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("EmbeddingVariable '", shared_name_, "': ",
                                                   attribute, " is ", value,
                                                   "; expected at most ", most));
  }

  // Another graph may have made the table: another session of this server, say.
  absl::Status CheckOptions(const TableOptions& found) const {
    if (found.dim == options_.dim && found.filter_freq == options_.filter_freq &&
        SameNumber(found.no_permission, options_.no_permission) &&
        found.keep_versions == options_.keep_versions &&
        found.most_waiting == options_.most_waiting &&
        found.bloom_counters == options_.bloom_counters &&
        found.bloom_hashes == options_.bloom_hashes &&
        found.bloom_bytes == options_.bloom_bytes) {
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError(absl::StrCat(
        "EmbeddingVariable '", shared_name_, "' is there with ", Listed(found),
        ", but this graph has it with ", Listed(options_),
        "; give one another name, or reset its container (tf.compat.v1.Session.reset)"));
  }

  static std::string Listed(const TableOptions& options) {
    return absl::StrCat("dimension ", options.dim, ", filter_freq ", options.filter_freq,
                        ", default_value_no_permission ", options.no_permission, ", ",
                        options.keep_versions ? "eviction" : "no eviction", ", at most ",
                        options.most_waiting, " waiting keys, ", options.bloom_counters,
                        " counters of a Bloom filter of ", options.bloom_bytes, " bytes, ",
                        options.bloom_hashes, " of a key");
  }

  std::string container_;
  std::string shared_name_;
  TableOptions options_;
};

class EmbeddingGatherOp : public OpKernel {
 public:
  explicit EmbeddingGatherOp(OpKernelConstruction* context) : OpKernel(context) {
    OP_REQUIRES_OK(context, context->GetAttr("num_counts", &num_counts_));
    OP_REQUIRES_OK(context, context->GetAttr("num_steps", &num_steps_));
    OP_REQUIRES_OK(context, context->GetAttr("read_only", &read_only_));
    OP_REQUIRES(context, num_counts_ <= 1 && num_steps_ <= 1,
                absl::InvalidArgumentError(absl::StrCat("'", name(), "' has ", num_counts_,
                                                        " counts and ", num_steps_,
                                                        " steps; expected at most one each")));
  }

  void Compute(OpKernelContext* context) override {
    EmbeddingPtr resource;
    OP_REQUIRES_OK(context, FindTable(context, &resource));
    const Tensor& keys = context->input(1);
    const Tensor& defaults = context->input(2);
    const int64_t dim = resource->table()->options().dim;
    OP_REQUIRES_OK(context, CheckCount(*resource, keys.NumElements()));
    OP_REQUIRES_OK(context, CheckDefaultRows(*resource, defaults));
    LookupBatch batch;
    OP_REQUIRES_OK(context, ReadOptional(context, *resource, keys, &batch));
    TensorShape shape = keys.shape();
    OP_REQUIRES_OK(context, shape.AddDimWithStatus(dim));
    Tensor* rows = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(0, shape, &rows));
    batch.keys = keys.flat<int64_t>().data();
    batch.count = keys.NumElements();
    batch.default_rows = defaults.flat<float>().data();
    batch.default_count = defaults.dim_size(0);
    batch.read_only = read_only_;
    batch.out = rows->flat<float>().data();
    if (batch.count == 0) return;
    resource->table()->Lookup(batch, OnWorkers(context, batch.count, 200 + 2 * dim));
  }

 private:
  absl::Status ReadOptional(OpKernelContext* context, const EmbeddingResource& resource,
                            const Tensor& keys, LookupBatch* batch) const {
    if (num_counts_ > 0) {
      const Tensor& counts = context->input(3);
      TF_RETURN_IF_ERROR(CheckShape(resource, "counts", counts, keys.shape()));
      batch->counts = counts.flat<int32_t>().data();
    }
    if (num_steps_ > 0) {
      const Tensor& step = context->input(3 + num_counts_);
      TF_RETURN_IF_ERROR(CheckShape(resource, "step", step, TensorShape()));
      batch->step = step.scalar<int64_t>()();
    }
    return absl::OkStatus();
  }

  int num_counts_ = 0;
  int num_steps_ = 0;
  bool read_only_ = false;
};

class EmbeddingSizesOp : public OpKernel {
 public:
  using OpKernel::OpKernel;

  void Compute(OpKernelContext* context) override {
    EmbeddingPtr resource;
    OP_REQUIRES_OK(context, FindTable(context, &resource));
    Tensor* output = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(0, TensorShape({3}), &output));
    const TableSizes sizes = resource->table()->Sizes();
    auto values = output->vec<int64_t>();
    values(0) = sizes.rows;
    values(1) = sizes.filtered;
    values(2) = sizes.bytes;
  }
};

class EmbeddingClearOp : public OpKernel {
 public:
  using OpKernel::OpKernel;

  void Compute(OpKernelContext* context) override {
    EmbeddingPtr resource;
    OP_REQUIRES_OK(context, FindTable(context, &resource));
    resource->table()->Clear();
  }
};

REGISTER_GUARDED_KERNEL(Name("WorkbenchEmbeddingVariable").Device(DEVICE_CPU), EmbeddingVariableOp);
REGISTER_GUARDED_KERNEL(Name("WorkbenchEmbeddingGather").Device(DEVICE_CPU), EmbeddingGatherOp);
REGISTER_GUARDED_KERNEL(Name("WorkbenchEmbeddingSizes").Device(DEVICE_CPU), EmbeddingSizesOp);
REGISTER_GUARDED_KERNEL(Name("WorkbenchEmbeddingClear").Device(DEVICE_CPU), EmbeddingClearOp);

}  // namespace
}  // namespace workbench
