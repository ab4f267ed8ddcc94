# The graph pass that applies a StagePlan.

library_sources(
  fuse_lookups.cc
  stage_plan_pass.cc
  stage_stream_pass.cc
  graph/copy_nodes.cc
  graph/cycle_check.cc
  graph/identity_device.cc
  graph/named_graph.cc
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
