# The C functions that workbench/_native.py lists.

library_sources(
  executors.cc
  layouts.cc
  stamp.cc)
