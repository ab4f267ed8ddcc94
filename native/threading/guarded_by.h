#ifndef WORKBENCH_THREADING_GUARDED_BY_H_
#define WORKBENCH_THREADING_GUARDED_BY_H_

// Clang's thread annotations for code that may include no TensorFlow header; elsewhere it is
// TF_GUARDED_BY. Other compilers read them as comments.

#if defined(__clang__)
#define WORKBENCH_GUARDED_BY(mutex) __attribute__((guarded_by(mutex)))
#define WORKBENCH_REQUIRES(mutex) __attribute__((exclusive_locks_required(mutex)))
#else
#define WORKBENCH_GUARDED_BY(mutex)
#define WORKBENCH_REQUIRES(mutex)
#endif

#endif  // WORKBENCH_THREADING_GUARDED_BY_H_
