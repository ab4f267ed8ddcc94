# Executors, their schedules, their memory and their costs.

plain_sources(
  memory/block_cache.cc
  scheduling/admission.cc
  scheduling/cost_model.cc
  scheduling/dag.cc)

if(WORKBENCH_HAS_EXECUTORS)
  library_sources(
    memory/caching_device.cc
    policies/executor.cc
    policies/executor_type_pass.cc
    policies/ordered/ordered_plan.cc
    policies/ordered/ordered_step.cc
    policies/ordered/ordered_values.cc
    policies/propagated/propagated_step.cc
    policies/stock_executor.cc
    server/mark_pass.cc
    server/partition_kernel.cc
    server/partition_op.cc
    server/partition_pass.cc
    step/async_kernel.cc
    step/executor_state.cc
    step/intra_op_pool.cc
    step/node_io.cc
    step/observed_node.cc
    step/output_bytes.cc
    step/step_frame.cc
    step/waiting_ops.cc)
endif()

plain_tests(
  memory/block_cache
  memory/object_pool
  scheduling/admission
  scheduling/cost_model
  scheduling/dag
  scheduling/workers
  scheduling/workers_stress
  server/pending_graphs
  step/step_stress)

if(WORKBENCH_BUILD_TESTS)
  # Steps made of all parts of an executor that need no TensorFlow.
  target_sources(step_stress_test PRIVATE
    ${WORKBENCH_TESTS}/executor/step/fake_graph.cc
    ${WORKBENCH_TESTS}/executor/step/fake_step.cc)
endif()
