// TensorFlow's own executor, whose steps use the intra-op pool of the thread that starts them.

#include <memory>
#include <utility>

#include "executor/policies/executor.h"
#include "executor/step/intra_op_pool.h"
#include "tensorflow/core/common_runtime/executor.h"
#include "tensorflow/core/common_runtime/executor_factory.h"

namespace workbench {
namespace {

using tensorflow::Executor;

class StockExecutor : public Executor {
 public:
  explicit StockExecutor(std::unique_ptr<Executor> stock) : stock_(std::move(stock)) {}

  absl::Status Run(const Args& args) override {
    const std::optional<Args> own = ArgsOnOwnPool(args);
    return stock_->Run(own ? *own : args);
  }

 private:
  // TensorFlow's executor keeps no reference to the args.
  void RunAsyncInternal(const Args& args, DoneCallback done) override {
    const std::optional<Args> own = ArgsOnOwnPool(args);
    stock_->RunAsync(own ? *own : args, std::move(done));
  }

  const std::unique_ptr<Executor> stock_;
};

class StockFactory : public tensorflow::ExecutorFactory {
 public:
  absl::Status NewExecutor(const tensorflow::LocalExecutorParams& params,
                           const tensorflow::Graph& graph,
                           std::unique_ptr<Executor>* made) override {
    std::unique_ptr<Executor> stock;
    TF_RETURN_IF_ERROR(tensorflow::NewExecutor("DEFAULT", params, graph, &stock));
    *made = std::make_unique<StockExecutor>(std::move(stock));
    return absl::OkStatus();
  }
};

const bool kStockRegistered = [] {
  // TensorFlow keeps factories for ever.
  tensorflow::ExecutorFactory::Register(kStockExecutor, new StockFactory());
  return true;
}();

}  // namespace
}  // namespace workbench
