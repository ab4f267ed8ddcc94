"""Counts the threads that a child process makes, by a library in front of the C library."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys

import pytest

_SOURCE = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
typedef int (*Create)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
static long made = 0;
long threads_made(void) { return __atomic_load_n(&made, __ATOMIC_RELAXED); }
int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*),
                   void* argument) {
  static Create real = 0;
  if (real == 0) real = (Create)dlsym(RTLD_NEXT, "pthread_create");
  __atomic_add_fetch(&made, 1, __ATOMIC_RELAXED);
  return real(thread, attributes, run, argument);
}
"""


def run_counted(script: pathlib.Path, folder: pathlib.Path) -> str:
    """Runs a script in which `ctypes.CDLL(None).threads_made()` tells how many were made so far.

    Skips the test where there is no C compiler.
    """
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler")
    source, library = folder / "threads.c", folder / "threads.so"
    source.write_text(_SOURCE)
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", source, "-o", library, "-ldl"], check=True)
    done = subprocess.run(
        [sys.executable, script],
        env=os.environ | {"LD_PRELOAD": str(library), "PYTHONPATH": os.getcwd()},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout
