# The graph pass that applies a StagePlan.

library_sources(
  stage_plan_pass.cc
  stage_stream_pass.cc
  choice/add_choices.cc
  choice/choice_kernels.cc
  choice/choice_ops.cc
  choice/make_choices.cc
  choice/make_choices_pass.cc
  choice/run_ends.cc
  fusion/apply_fusion.cc
  graph/copy_nodes.cc
  graph/cycle_check.cc
  graph/identity_device.cc
  graph/named_graph.cc
  graph/same_nodes.cc
  plan/stage_plan.cc
  plan/stage_plan_rules.cc
  restart/graph_stages.cc
  restart/initializers.cc
  restart/restart_in_functions.cc
  restart/restart_stages.cc
  restart/saved_inputs.cc
  restart/source_reads.cc
  stages/apply_stage_plan.cc
  stages/stage_nodes.cc
  stages/trail_updates.cc)
