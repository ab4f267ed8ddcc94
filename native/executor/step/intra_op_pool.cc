#include "executor/step/intra_op_pool.h"

#include <pthread.h>

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

// Threads whose names the kernel shows: TensorFlow gives it none of more than 15 characters, and
// 2.20 none at all.
class IntraOpPool::NamedThreads : public tensorflow::EnvWrapper {
 public:
  explicit NamedThreads(const std::string& name)
      : tensorflow::EnvWrapper(tensorflow::Env::Default()),
        shown_(name.substr(name.size() - std::min(name.size(), kLongestThreadName))) {}

  tensorflow::Thread* StartThread(const tensorflow::ThreadOptions& options, const std::string&,
                                  absl::AnyInvocable<void()> run) override {
    auto named = [shown = shown_, run = std::move(run)]() mutable {
      pthread_setname_np(pthread_self(), shown.c_str());
      std::move(run)();
    };
    return target()->StartThread(options, shown_, std::move(named));
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
