#include "executor/step/intra_op_pool.h"

#include <algorithm>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "tensorflow/core/platform/env.h"

namespace workbench {
namespace {

using tensorflow::Executor;

constexpr size_t kLongestThreadName = 15;

thread_local IntraOpPool* used_here = nullptr;

}  // namespace

// Threads whose names the kernel shows: TensorFlow gives it none of more than 15 characters.
class IntraOpPool::NamedThreads : public tensorflow::EnvWrapper {
 public:
  explicit NamedThreads(const std::string& name)
      : tensorflow::EnvWrapper(tensorflow::Env::Default()),
        shown_(name.substr(name.size() - std::min(name.size(), kLongestThreadName))) {}

  tensorflow::Thread* StartThread(const tensorflow::ThreadOptions& options, const std::string&,
                                  absl::AnyInvocable<void()> run) override {
    return target()->StartThread(options, shown_, std::move(run));
  }

 private:
  const std::string shown_;
};

IntraOpPool::IntraOpPool(const std::string& name, int threads)
    : env_(std::make_unique<NamedThreads>(name)),
      threads_(env_.get(), tensorflow::ThreadOptions(), name, threads,
               /*low_latency_hint=*/false) {}

IntraOpPool::~IntraOpPool() = default;

void IntraOpPool::Schedule(std::function<void()> task) {
  threads_.AsEigenThreadPool()->Schedule(std::move(task));
}

void IntraOpPool::ScheduleWithHint(std::function<void()> task, int start, int limit) {
  threads_.AsEigenThreadPool()->ScheduleWithHint(std::move(task), start, limit);
}

void IntraOpPool::Cancel() { threads_.AsEigenThreadPool()->Cancel(); }

int IntraOpPool::NumThreads() const { return threads_.NumThreads(); }

int IntraOpPool::CurrentThreadId() const { return threads_.CurrentThreadId(); }

void IntraOpPool::UseInThisThread(IntraOpPool* pool) { used_here = pool; }

std::optional<Executor::Args> ArgsOnOwnPool(const Executor::Args& args) {
  if (TF_PREDICT_TRUE(used_here == nullptr) || args.user_intra_op_threadpool != nullptr) {
    return std::nullopt;
  }
  std::optional<Executor::Args> own(args);
  own->user_intra_op_threadpool = used_here;
  return own;
}

}  // namespace workbench
