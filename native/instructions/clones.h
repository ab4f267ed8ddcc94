#ifndef WORKBENCH_INSTRUCTIONS_CLONES_H_
#define WORKBENCH_INSTRUCTIONS_CLONES_H_

// A function marked WORKBENCH_CLONES is compiled once for each instruction set, one marked
// WORKBENCH_CLONES_FOR once for each that it names, and the plain one, and chosen when the
// library is loaded; a loop that it calls must be WORKBENCH_INLINE to be compiled with it. The
// sanitizers cannot run while the loader still chooses, so they get the plain one.
#if defined(__x86_64__) && defined(__linux__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define WORKBENCH_CLONES_FOR(...) __attribute__((target_clones(__VA_ARGS__, "default")))
#else
#define WORKBENCH_CLONES_FOR(...)
#endif
#define WORKBENCH_CLONES WORKBENCH_CLONES_FOR("avx512f", "avx2")

#define WORKBENCH_INLINE __attribute__((always_inline)) inline
// Of a lambda, between its arguments and its body: it is compiled with what calls it.
#define WORKBENCH_INLINED __attribute__((always_inline))

#endif  // WORKBENCH_INSTRUCTIONS_CLONES_H_
