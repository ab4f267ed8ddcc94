# Work on more than one thread.

plain_sources(
  allowed_cores.cc
  crew.cc
  shared_work.cc)

library_sources(
  intra_op_threads.cc)

plain_tests(
  allowed_cores
  crew
  shared_work)
