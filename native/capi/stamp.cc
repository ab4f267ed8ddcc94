// What this library was built for; workbench/_native.py compares it with the running TensorFlow.

extern "C" const char* workbench_stamp() { return WORKBENCH_STAMP; }
