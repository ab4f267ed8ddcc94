# The graph pass that applies a StagePlan.

library_sources(
  apply_stage_plan.cc
  fuse_lookups.cc
  graph/copy_nodes.cc
  graph/cycle_check.cc
  graph/identity_device.cc
  graph/named_graph.cc
  plan/stage_plan.cc
  plan/stage_plan_rules.cc
  initializers.cc
  restart_in_functions.cc
  restart_stages.cc
  stage_nodes.cc
  stage_plan_pass.cc
  stage_stream_pass.cc
  trail_updates.cc)
