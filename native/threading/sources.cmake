# Work on more than one thread.

plain_sources(
  crew.cc
  shared_work.cc)

library_sources(
  intra_op_threads.cc)

plain_tests(
  crew
  shared_work)
