// What this library was built for; workbench/_native.py compares it with the running TensorFlow.

#include <cstdlib>

#include "capi/export.h"

WORKBENCH_EXPORT const char* workbench_stamp() { return WORKBENCH_STAMP; }

// Frees a text that another function returned.
WORKBENCH_EXPORT void workbench_free(char* text) { std::free(text); }
