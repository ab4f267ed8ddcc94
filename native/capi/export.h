#ifndef WORKBENCH_CAPI_EXPORT_H_
#define WORKBENCH_CAPI_EXPORT_H_

// A C function that Python calls through ctypes; all other symbols of the library are hidden.
// workbench/_native.py lists these functions with their arguments. Texts are tables with a header
// line and tabs between columns; workbench_free frees them.
#define WORKBENCH_EXPORT extern "C" __attribute__((visibility("default")))

#endif  // WORKBENCH_CAPI_EXPORT_H_
