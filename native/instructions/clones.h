#ifndef WORKBENCH_INSTRUCTIONS_CLONES_H_
#define WORKBENCH_INSTRUCTIONS_CLONES_H_

// A function marked WORKBENCH_CLONES is compiled once for each instruction set and chosen when the
// library is loaded; a loop that it calls must be WORKBENCH_INLINE to be compiled with it. The
// sanitizers cannot run while the loader still chooses, so they get the plain one.
#if defined(__x86_64__) && defined(__linux__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define WORKBENCH_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define WORKBENCH_CLONES
#endif

#define WORKBENCH_INLINE __attribute__((always_inline)) inline

#endif  // WORKBENCH_INSTRUCTIONS_CLONES_H_
